package leadership

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ensign-operator/ensign/pkg/options"
)

func noFile(string) bool { return false }

func TestWhatIsWrongWithAnElection(t *testing.T) {
	second, usual := time.Second, 15*time.Second
	two := 2 * time.Second
	for why, test := range map[string]struct {
		change func(*ctrl.Options)
		want   []string // in the error; none: there is none
	}{
		"the usual times":                   {func(*ctrl.Options) {}, nil},
		"none is held, whatever is set":     {func(o *ctrl.Options) { o.LeaderElection, o.LeaderElectionReleaseOnCancel = false, true }, nil},
		"a leader that tries too long":      {func(o *ctrl.Options) { o.RenewDeadline = &usual }, []string{"ctrl.Options.RenewDeadline=15s", "less than ctrl.Options.LeaseDuration=15s"}},
		"a renewal that is not repeated":    {func(o *ctrl.Options) { o.RenewDeadline = &two }, []string{"ctrl.Options.RenewDeadline=2s", "more than"}},
		"a lease too short":                 {func(o *ctrl.Options) { o.LeaseDuration = &second }, []string{"ctrl.Options.LeaseDuration=1s", "3s"}},
		"a lease without a name":            {func(o *ctrl.Options) { o.LeaderElectionID = "" }, []string{"ctrl.Options.LeaderElectionID: "}},
		"a lease with an impossible name":   {func(o *ctrl.Options) { o.LeaderElectionID = "My_Lease" }, []string{"ctrl.Options.LeaderElectionID=My_Lease", "lower-case"}},
		"a lease without a namespace":       {func(o *ctrl.Options) { o.LeaderElectionNamespace = "" }, []string{"ctrl.Options.LeaderElectionNamespace: "}},
		"no name of a namespace":            {func(o *ctrl.Options) { o.LeaderElectionNamespace = "a.b" }, []string{"ctrl.Options.LeaderElectionNamespace=a.b"}},
		"client-go releases the lease":      {func(o *ctrl.Options) { o.LeaderElectionReleaseOnCancel = true }, []string{"ctrl.Options.LeaderElectionReleaseOnCancel=true: ", "while runs still execute"}},
		"a lock that the fence can't watch": {func(o *ctrl.Options) { o.LeaderElectionResourceLockInterface = &resourcelock.LeaseLock{} }, []string{"ctrl.Options.LeaderElectionResourceLockInterface: ", "lock of its own"}},
		"several faults":                    {func(o *ctrl.Options) { o.LeaderElectionID, o.LeaderElectionReleaseOnCancel = "", true }, []string{"LeaderElectionID", "LeaderElectionReleaseOnCancel"}},
	} {
		t.Run(why, func(t *testing.T) {
			o := ctrl.Options{LeaderElection: true, LeaderElectionID: "lease", LeaderElectionNamespace: "ns"}
			test.change(&o)
			err := checkElection(o, noFile)
			if (err == nil) != (test.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, text := range test.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("want %q in %v", text, err)
				}
			}
			if err == nil {
				return
			}
			for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
				if named := new(options.Error); !errors.As(one, &named) {
					t.Errorf("%T names no field", one)
				}
			}
		})
	}
}
