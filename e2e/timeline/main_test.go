package timeline

import (
	"os"
	"testing"
)

// TestMain keeps what these tests make up out of the folder of objects that were
// really written: they are no objects that Istio would have to accept.
func TestMain(m *testing.M) {
	if err := os.Unsetenv(WrittenObjects); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
