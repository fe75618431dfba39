package docs

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ensign-operator/ensign/internal/config"
)

// TestTheSampleDeploymentCannotStarve: its memory holds so many runs that no watch waits for the long
// runs of others, and each manifest says the same.
func TestTheSampleDeploymentCannotStarve(t *testing.T) {
	watched := len(regexp.MustCompile(`(?m)^  kind: `).FindAllString(read(t, "watches.yaml"), -1))
	for _, name := range []string{"config/manager/manager.yaml", "charts/ensign/values.yaml", "internal/author/scaffold/templates/project/config/manager/manager.yaml.tmpl"} {
		limit, err := resource.ParseQuantity(first(t, name, `limits:\n(?: +#.*\n)* +memory: (\S+)`))
		if err != nil {
			t.Fatal(err)
		}
		runs := config.DefaultMaxConcurrentRuns(watched, uint64(limit.Value()), true)
		if runs != 11 || runs < 2*(watched-1) {
			t.Errorf("%s: %s holds %d runs of %d watches", name, limit.String(), runs, watched)
		}
	}
}
