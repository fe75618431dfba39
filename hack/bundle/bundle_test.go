package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
)

// copyOf copies what the bundle is made of into a directory.
func copyOf(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "config"), os.DirFS("../../config")); err != nil {
		t.Fatal(err)
	}
	return root
}

// edit replaces a text of a file, which has to have it.
func edit(t *testing.T, path, old, with string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q: %v", path, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, with, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnInvalidBundleIsRefused(t *testing.T) {
	words := "config/manifests/clusterserviceversion.yaml"
	for name, c := range map[string]struct{ file, old, with, want string }{
		"a category that is none":     {words, "categories: Database", "categories: Nonsense", `value "Nonsense" is not in the set`},
		"a version that is none":      {words, "minKubeVersion: 1.35.0", "minKubeVersion: new", "MinKubeVersion"},
		"a name without the version":  {words, "name: ensign.v0.1.0", "name: ensign!", "ensign!"},
		"a field that is unknown":     {words, "maturity:", "maturitx:", "maturitx"},
		"a binding to a missing role": {"config/rbac/kustomization.yaml", "  - role.yaml\n", "", "want a role of config/rbac"},
	} {
		root := copyOf(t)
		edit(t, filepath.Join(root, c.file), c.old, c.with)
		if err := run("bundle", root, t.TempDir(), "ensign:dev", ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", name, c.want, err)
		}
	}
}

func TestTheImageIsTheOneThatIsAskedFor(t *testing.T) {
	out, image := t.TempDir(), "example.invalid/team/ensign@sha256:0123"
	for what, file := range map[string]string{"install": "install.yaml", "bundle": "bundle/manifests/clusterserviceversion.ensign.v0.1.0.yaml"} {
		if err := run(what, "../..", out, image, ""); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(out, file))
		if err != nil || !strings.Contains(string(text), "image: "+image+"\n") || strings.Contains(string(text), "ensign:dev") {
			t.Errorf("%s: %s does not have the image alone (error %v)", what, file, err)
		}
	}
}

// What is there of an older bundle goes.
func TestABundleHasWhatComesFromConfigAlone(t *testing.T) {
	out := t.TempDir()
	stray := filepath.Join(out, "bundle", "manifests", "configmap.stray.yaml")
	if err := errors.Join(os.MkdirAll(filepath.Dir(stray), 0o700), os.WriteFile(stray, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stray}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := run("bundle", "../..", out, "ensign:dev", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stray); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left (error %v)", stray, err)
	}
}

// A release has a bundle of its own number, to which each older one is upgraded.
func TestTheVersionIsTheOneThatIsAskedFor(t *testing.T) {
	out := t.TempDir()
	if err := run("bundle", "../..", out, "ensign:dev", "v1.4.0"); err != nil {
		t.Fatal(err)
	}
	loaded, err := manifests.GetBundleFromDir(filepath.Join(out, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	if got := loaded.CSV; got.Name != "ensign.v1.4.0" || got.Spec.Version.String() != "1.4.0" || got.Annotations["olm.skipRange"] != "<1.4.0" {
		t.Errorf("got %s, version %s, skipRange %q", got.Name, got.Spec.Version, got.Annotations["olm.skipRange"])
	}
	if err := run("bundle", "../..", out, "ensign:dev", "next"); err == nil || !strings.Contains(err.Error(), "-version") {
		t.Errorf("a version that is none: %v", err)
	}
}
