package mesh

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const earlier = `# TYPE pilot_pushcontext_init_seconds histogram
pilot_pushcontext_init_seconds_bucket{le="+Inf"} 2
pilot_pushcontext_init_seconds_sum 0.5
pilot_pushcontext_init_seconds_count 2
# TYPE pilot_xds_pushes counter
pilot_xds_pushes{type="cds"} 3
`

const later = `# TYPE pilot_pushcontext_init_seconds histogram
pilot_pushcontext_init_seconds_bucket{le="+Inf"} 5
pilot_pushcontext_init_seconds_sum 2
pilot_pushcontext_init_seconds_count 5
# TYPE pilot_xds_pushes counter
pilot_xds_pushes{type="cds"} 4
pilot_xds_pushes{type="rds"} 7
# TYPE pilot_xds_push_time histogram
pilot_xds_push_time_bucket{type="cds",le="+Inf"} 4
pilot_xds_push_time_sum{type="cds"} 0.25
pilot_xds_push_time_count{type="cds"} 4
pilot_xds_push_time_bucket{type="rds",le="+Inf"} 7
pilot_xds_push_time_sum{type="rds"} 0.5
pilot_xds_push_time_count{type="rds"} 7
# TYPE pilot_proxy_convergence_time histogram
pilot_proxy_convergence_time_bucket{le="+Inf"} 4
pilot_proxy_convergence_time_sum 1
pilot_proxy_convergence_time_count 4
`

func TestTheCostOfACanaryIsWhatIstiodDidBetweenTwoReadings(t *testing.T) {
	before, err := parseCost([]byte(earlier))
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseCost([]byte(later))
	if err != nil {
		t.Fatal(err)
	}
	want := Cost{
		Pushes: 3, Computing: 1500 * time.Millisecond, Sent: map[string]int{"cds": 1, "rds": 7},
		Generating: 750 * time.Millisecond, Convergence: 250 * time.Millisecond,
	}
	if diff := cmp.Diff(want, after.since(before), cmpopts.IgnoreUnexported(Cost{})); diff != "" {
		t.Error(diff)
	}
}

func TestMetricsThatCannotBeReadAreAnError(t *testing.T) {
	if _, err := parseCost([]byte("pilot_xds_pushes{ 1\n")); err == nil {
		t.Error("no error")
	}
}
