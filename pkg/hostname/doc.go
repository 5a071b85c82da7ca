// Package hostname tells whether two names in Istio's configuration mean the same
// Kubernetes Service.
//
// A VirtualService may call the Service "web" of namespace "shop" by four names:
//
//	web
//	web.shop
//	web.shop.svc
//	web.shop.svc.cluster.local
//
// Canonical writes all four as the last one, and Same compares two names that were
// made canonical in different namespaces. Names that are no Service of the cluster
// (example.com, *.shop.example, 10.0.0.1, web.shop.svc.clusterset.local) are left
// alone but for upper case and a trailing dot, as DNS has it.
//
// A short name belongs to the namespace of the object that holds it; that is the
// rule of the field destination.host in istio.io/api. "web.shop" is not resolved
// by Istio itself, but the native router of Argo Rollouts accepts it.
//
// The package looks nothing up: it neither knows which Services or namespaces
// exist nor which top-level domains do. All functions are pure.
package hostname
