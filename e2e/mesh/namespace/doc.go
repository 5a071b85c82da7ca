// Package namespace runs a program again in a network namespace of its own, in
// which every address of the lab's pods is local: a server that listens on
// 0.0.0.0 can answer for all of them. EndpointSlices may not name loopback
// addresses, so without it nothing could be sent to a pod.
//
//	func main() {
//		if !namespace.Inside() {
//			build() // inside there is no network to download from
//			code, err := namespace.Run()
//			…
//			os.Exit(code)
//		}
//		…
//	}
//
// Nothing leaves such a namespace: it has the loopback interface and no other.
// Only Linux has network namespaces. Root is not needed where the kernel lets
// people make user namespaces.
package namespace
