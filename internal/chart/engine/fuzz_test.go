package engine

import (
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/watches"
)

// FuzzSettings reads what a CR's author writes into annotations. Nothing but a truth value sets one, and the message
// about another one is short.
func FuzzSettings(f *testing.F) {
	f.Add("upgrade-force", "true", "text")
	f.Add("uninstall-disable-hooks", "yes", "\x00")
	f.Fuzz(func(t *testing.T, name, text, description string) {
		s, err := (&Engine{}).readSettings(map[string]string{watches.ChartAnnotations + name: text, watches.ChartAnnotations + "upgrade-description": description})
		on := s.upgradeForce || s.rollbackForce || s.uninstallWait || s.disableHooks[order.Install] || s.disableHooks[order.Upgrade] || s.disableHooks[order.Uninstall]
		if on && (err != nil || !strings.EqualFold(text, "true") && text != "t" && text != "T" && text != "1") {
			t.Errorf("%s is on by %q, %v", name, text, err)
		}
		if err != nil && (on || len(err.Error()) > 1024) {
			t.Errorf("%d bytes: %.300v", len(err.Error()), err)
		}
		if name != "upgrade-description" && s.descriptions[order.Upgrade] != description {
			t.Errorf("got the description %q", s.descriptions[order.Upgrade])
		}
	})
}
