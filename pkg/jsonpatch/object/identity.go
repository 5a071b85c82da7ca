package object

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Identity is which object it is, in which version, and nothing else: of the
// metadata only name, namespace, uid, resourceVersion and generation are set.
type Identity struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

// IdentityOf reads the identity of u. The error names the first field that has the
// wrong type; the fields before and after it are read all the same, so that even a
// broken object can be found under its name. u may be nil.
func IdentityOf(u *unstructured.Unstructured) (Identity, error) {
	var id Identity
	root := ContentOf(u)
	if root.Absent() {
		return id, root.Wrong("an object")
	}
	metadata := root.Field("metadata")
	first := metadata.Object()
	text := func(n Node) string {
		value, err := n.Text()
		first = cmp.Or(first, err)
		return value
	}
	id.APIVersion, id.Kind = text(root.Field("apiVersion")), text(root.Field("kind"))
	id.Name, id.Namespace = text(metadata.Field("name")), text(metadata.Field("namespace"))
	id.UID = types.UID(text(metadata.Field("uid")))
	id.ResourceVersion = text(metadata.Field("resourceVersion"))
	generation, err := metadata.Field("generation").Integer()
	id.Generation = generation
	return id, cmp.Or(first, err)
}

// ContentOf is the root of u, absent if u is nil or empty.
func ContentOf(u *unstructured.Unstructured) Node {
	if u == nil {
		return Node{}
	}
	return Root(u.Object)
}

// Owns reports whether fieldManager owns the field at path, or anything below it,
// by metadata.managedFields: whether it was the last to give that field, or a part
// of it, another value. What somebody else has changed since is no longer its own.
// Writes to a subresource do not count, and an entry that cannot be read is none.
// Without a path it asks for any field at all.
func Owns(u *unstructured.Unstructured, fieldManager string, path ...string) bool {
	if fieldManager == "" {
		return false
	}
	entries, _ := ContentOf(u).Field("metadata").Field("managedFields").Items()
	return slices.ContainsFunc(entries, func(entry Node) bool {
		manager, _ := entry.Field("manager").Text()
		operation, _ := entry.Field("operation").Text()
		subresource, err := entry.Field("subresource").Text()
		return manager == fieldManager && (operation == "Update" || operation == "Apply") &&
			subresource == "" && err == nil && names(entry.Field("fieldsV1"), path)
	})
}

// names reports whether a set of fields, in the format of metav1.FieldsV1, has the
// path in it.
func names(fields Node, path []string) bool {
	for _, name := range path {
		fields = fields.Field("f:" + name)
	}
	return !fields.Absent() && fields.Object() == nil
}
