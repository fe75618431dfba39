package warm

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunsThatShareServers(t *testing.T) {
	base := []string{"PATH=/bin", "LANG=C", "JOB_ID=1"}
	tests := map[string]struct {
		env  []string
		want bool
	}{
		"the same, in another order":                  {[]string{"LANG=C", "JOB_ID=1", "PATH=/bin"}, true},
		"what each run has of its own does not count": {[]string{"PATH=/bin", "LANG=C", "JOB_ID=2", "KUBECONFIG=/k", "ANSIBLE_ROLES_PATH=/r", "ANSIBLE_LOCAL_TEMP=/t"}, true},
		"another value":                               {[]string{"PATH=/bin", "LANG=de", "JOB_ID=1"}, false},
		"one variable more":                           {append(slices.Clone(base), "ANSIBLE_FORKS=1"), false},
		"one with the beginning of such a name":       {append(slices.Clone(base), "KUBECONFIG_DIR=/"), false},
	}
	for why, test := range tests {
		t.Run(why, func(t *testing.T) {
			if got := key(shared(base)) == key(shared(test.env)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// Both sides of the socket must leave the same variables out.
func TestTheServersLeaveTheSameVariablesOut(t *testing.T) {
	content, err := os.ReadFile("server/ensign_warm/environment.py")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)OF_ONE_RUN = frozenset\((.*?)\n\)`).FindSubmatch(content)
	if list == nil {
		t.Fatal("the servers have no such list")
	}
	var theirs []string
	for _, name := range regexp.MustCompile(`b"([^"]+)"`).FindAllSubmatch(list[1], -1) {
		theirs = append(theirs, string(name[1]))
	}
	if diff := cmp.Diff(ofOneRun(), theirs); diff != "" {
		t.Error(diff)
	}
}
