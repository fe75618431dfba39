package engine

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
	"github.com/ensign-operator/ensign/internal/chart/release"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// TestAFailedInstallationIsNotForgotten: what it has left is found also after the CR's spec asks
// for another release.
func TestAFailedInstallationIsNotForgotten(t *testing.T) {
	w := newWorld(t, nil)
	w.outcome = content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: "no"}
	cr := resource(nil, nil)
	result, _ := w.run(t.Context(), cr, false)
	want := map[string]any{"attemptedRelease": map[string]any{"name": cr.GetName(), "namespace": cr.GetNamespace()}}
	if diff := cmp.Diff(want, result.Fields); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ended := uninstalled().Fields; len(ended) != 2 || ended["attemptedRelease"] != nil {
		t.Errorf("an uninstalled release has the fields %v", ended)
	}
}

func TestNotesAreBounded(t *testing.T) {
	last := &release.Release{Info: &helm.Info{Notes: strings.Repeat("ä", 1<<20)}}
	if text := deployed(last, "").Conditions[1].Message; len(text) > maxNotes || !strings.HasSuffix(text, "[cut]") {
		t.Errorf("the notes have %d bytes, ending with %q", len(text), text[max(0, len(text)-20):])
	}
}

// Whoever may write Secrets can name any object as the owner of a release. Whether that exists is not told.
func TestAdoptionDoesNotLookIntoOtherNamespaces(t *testing.T) {
	for name, gone := range map[string]bool{"the owner exists": false, "it does not": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(watch *watches.Watch) { watch.Chart.Adopt = true })
			w.found(common.StatusDeployed)
			w.annotations = map[string]string{"operator-sdk/primary-resource-type": "ConfigMap", "operator-sdk/primary-resource": "elsewhere/a"}
			if gone {
				w.object = nil
			}
			result, _ := w.run(t.Context(), resource(nil, nil), false)
			if result.Outcome.Verdict != content.Failed || !strings.Contains(result.Outcome.Message, "duplicate release name") || len(w.orders) > 0 {
				t.Errorf("got %+v and %d orders", result.Outcome, len(w.orders))
			}
		})
	}
}

func TestAManifestIsShownWithoutSecretsAndBounded(t *testing.T) {
	const secret = "cGEkJHcwcmQ"
	got := shown(manifest.Parse("---\n# Source: a\nkind: Secret\nmetadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: " + secret + "}}\ndata: {password: " + secret + "}\nstringData: {p: " + secret + "}\n" +
		"---\nkind: List\nitems:\n- {kind: Secret, data: {password: " + secret + "}}\n---\nkind: Secret\ndata: " + secret + "\n---\nkind: ConfigMap\ndata: {a: b}\n"))
	if strings.Contains(got, secret) || strings.Count(got, "(redacted)") != 4 || !strings.Contains(got, "a: b") {
		t.Errorf("got:\n%s", got)
	}
	if long := shown(manifest.Parse("kind: ConfigMap\ndata: {a: " + strings.Repeat("ä", 1<<20) + "}\n")); len(long) > maxManifest || !strings.HasSuffix(long, "[cut]") {
		t.Errorf("got %d bytes, ending with %q", len(long), long[max(0, len(long)-20):])
	}
	if broken := shown(manifest.Parse("kind: Secret\n\tdata: " + secret)); broken != "" {
		t.Errorf("a manifest that cannot be read is shown: %q", broken)
	}
}

// Helm's actions cost the manager 46 MB and everyone's memory 50 MiB.
func TestTheManagerDoesNotLinkHelmsActions(t *testing.T) {
	list := func(program string) string {
		t.Helper()
		out, err := exec.Command("go", "list", "-deps", "../../../cmd/"+program).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	const actions = "helm.sh/helm/v4/pkg/action\n"
	manager := list("manager")
	for _, heavy := range []string{actions, "helm.sh/helm/v4/pkg/engine\n", "helm.sh/helm/v4/pkg/kube\n", "k8s.io/kubectl/", "k8s.io/cli-runtime/"} {
		if strings.Contains(manager, heavy) {
			t.Errorf("the manager links %s", heavy)
		}
	}
	if !strings.Contains(list("chart-exec"), actions) {
		t.Error("chart-exec does not link them, so that this test shows nothing")
	}
}
