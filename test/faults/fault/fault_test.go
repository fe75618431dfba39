package fault

import (
	"testing"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/plan"
)

// Whatever a plan may name meets a write and does something to it, and tells when.
func TestEveryFaultMeetsAWrite(t *testing.T) {
	for _, f := range plan.Faults() {
		struck := false
		made := AtWrite(f, func() { struck = true })
		if (made.Before == nil) == (made.After == nil) {
			t.Errorf("%s: it strikes before or after the write, and not %v", f, made)
			continue
		}
		if hook := made.Before; hook != nil {
			hook(apiproxy.Request{})
		} else {
			made.After(apiproxy.Request{})
		}
		if !struck {
			t.Errorf("%s: it does not tell that it strikes", f)
		}
		if fails := made.Break || made.Code != 0; Lasts(f) && !fails {
			t.Errorf("%s lasts, and lets no request fail", f)
		}
		if made.Withhold && !made.Break && made.Code == 0 {
			t.Errorf("%s withholds a request that gets no answer", f)
		}
		if Window(f) <= 0 {
			t.Errorf("%s: no window", f)
		}
	}
}
