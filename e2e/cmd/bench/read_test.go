package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	procStatus = "Name:\tplugin\nVmHWM:\t   69120 kB\nVmRSS:\t   65536 kB\nRssAnon:\t   35000 kB\nRssFile:\t   30720 kB\n"
	procStat   = "4242 (a (b) c) S 1 4242 4242 0 -1 4194304 9000 0 0 0 150 25 0 0 20 0 12 0 1 1 1"
)

func TestWhatAProcessUsesIsReadFromProc(t *testing.T) {
	got, err := parseUsage([]byte(procStatus), []byte(procStat))
	if err != nil {
		t.Fatal(err)
	}
	want := consumption{resident: 64 << 20, file: 30 << 20, peak: 67<<20 + 512<<10, cpu: 1750 * time.Millisecond}
	if got != want {
		t.Errorf("read %+v, want %+v", got, want)
	}
}

func TestWhatCannotBeReadFromProcIsNamed(t *testing.T) {
	for name, test := range map[string]struct{ status, stat, text string }{
		"a field is missing":   {"VmRSS:\t1 kB\n", procStat, "RssFile"},
		"a size is no number":  {strings.Replace(procStatus, "65536", "much", 1), procStat, "VmRSS"},
		"a line is cut off":    {procStatus, "4242 (plugin) S 1", "too short"},
		"a time is no number":  {procStatus, strings.Replace(procStat, "150 25", "x 25", 1), "stat"},
		"there is not a thing": {"", "", "VmRSS"},
	} {
		if _, err := parseUsage([]byte(test.status), []byte(test.stat)); err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestThisProcessCanBeRead(t *testing.T) {
	u, err := usageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if u.resident < 1<<20 || u.peak < u.resident || u.file > u.resident {
		t.Errorf("read %+v", u)
	}
}

func TestTheMachineIsDescribedByWhatIsKnown(t *testing.T) {
	got := describe([]byte("processor\t: 0\nmodel name\t: Fast CPU\n"), []byte("MemTotal:       25165824 kB\n"), 2, "linux/amd64", "go1.26")
	if want := "Fast CPU, 2 cores, 24 GiB, linux/amd64, go1.26, Argo Rollouts v1.10.1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := describe(nil, nil, 4, "darwin/arm64", "go1.26"), "4 cores, darwin/arm64, go1.26, Argo Rollouts v1.10.1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheServersWritesOfIstiosObjectsAreCounted(t *testing.T) {
	text := `# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="networking.istio.io",resource="virtualservices",scope="resource",subresource="",verb="PATCH",version="v1"} 5
apiserver_request_total{code="422",component="apiserver",dry_run="",group="networking.istio.io",resource="virtualservices",scope="resource",subresource="",verb="PATCH",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="networking.istio.io",resource="destinationrules",scope="resource",subresource="",verb="PUT",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="networking.istio.io",resource="virtualservices",scope="cluster",subresource="",verb="LIST",version="v1"} 7
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="replicasets",scope="resource",subresource="",verb="PATCH",version="v1"} 9
`
	got, err := parseServerWrites([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := counted{{"patch", "virtualservices"}: 7, {"update", "destinationrules"}: 3}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(kindOfRequest{})); diff != "" {
		t.Error(diff)
	}
	later := counted{{"patch", "virtualservices"}: 9, {"update", "destinationrules"}: 3}
	if diff := cmp.Diff(counted{{"patch", "virtualservices"}: 2}, later.minus(got), cmp.AllowUnexported(kindOfRequest{})); diff != "" {
		t.Error(diff)
	}
	if _, err := parseServerWrites([]byte("no { metrics")); err == nil {
		t.Error("what is no metrics was taken for some")
	}
}
