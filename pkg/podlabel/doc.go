// Package podlabel tells which labels a pod, or its endpoint in the mesh, gets after its
// template: a selector that asks for one of them may well match although the template
// does not have it. It knows names only, and no pod.
package podlabel
