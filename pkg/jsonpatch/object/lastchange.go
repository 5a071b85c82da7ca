package object

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LastChange is the time of the newest entry of metadata.managedFields, whoever it
// belongs to, zero if there is none. Like LastWrite it has whole seconds, is the
// API server's, and passes over what cannot be read. Writes to a subresource do not
// count.
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
