package object

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LastChange is the time of the newest entry of metadata.managedFields, whoever it
// belongs to, zero if there is none. It has whole seconds and is the API server's.
// Entries that cannot be read are passed over: they are written by the API server,
// and nobody could repair them by hand. Writes to a subresource do not count.
func LastChange(u *unstructured.Unstructured) time.Time {
	var newest time.Time
	entries, _ := ContentOf(u).Field("metadata").Field("managedFields").Items()
	for _, entry := range entries {
		text, _ := entry.Field("time").Text()
		subresource, err := entry.Field("subresource").Text()
		changed, parseErr := time.Parse(time.RFC3339, text)
		if err == nil && subresource == "" && parseErr == nil && changed.After(newest) {
			newest = changed
		}
	}
	return newest
}
