// Package object reads typed values out of a cached Kubernetes object whose
// content is unknown territory.
//
// The content of an unstructured object can be anything: a list where an object is
// expected, a number written as text, nothing at all. A Node stands for one place in
// it and knows the way there, so that a reader can go on without checking each
// step, and an error names the field as a user would look for it:
//
//	weight, err := object.Root(content).Field("spec").Field("weight").Integer()
//	// spec.weight: want an integer, found text
//
// What is absent and what is null read as the zero value without an error: the API
// leaves out fields that have their default. What is there with another type is an
// error. Nothing here panics, writes, or keeps a reference to a map or list of the
// object it reads.
//
// Identity reads what the plugin needs of an object's metadata, and nothing else:
// labels, annotations and managedFields are most of what an informer would
// otherwise hold in memory.
package object
