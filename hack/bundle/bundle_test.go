package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copyOf copies what the bundle is made of, and what is made, into a directory.
func copyOf(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"config", "bundle", "dist"} {
		if err := os.CopyFS(filepath.Join(root, name), os.DirFS(filepath.Join("..", "..", name))); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "bundle.Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bundle.Dockerfile"), text, 0o600); err != nil {
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

func TestWhatIsCommittedIsUpToDate(t *testing.T) {
	if err := run("check", copyOf(t), ""); err != nil {
		t.Error(err)
	}
}

func TestCheckNoticesWhatIsNot(t *testing.T) {
	for name, c := range map[string]struct{ file, old, with, want string }{
		"a right changes everything that repeats it": {"config/rbac/role.yaml", "[secrets]\n    verbs: [get,", "[secrets]\n    verbs: [delete,", "dist/install.yaml is not what config/ says"},
		"an installer is edited":                     {"dist/install.yaml", "ensign:dev", "ensign:other", "dist/install.yaml is not what config/ says"},
		"the bundle's Dockerfile is edited":          {"bundle.Dockerfile", "FROM scratch", "FROM other", "bundle.Dockerfile is not what config/ says"},
	} {
		root := copyOf(t)
		edit(t, filepath.Join(root, c.file), c.old, c.with)
		if err := run("check", root, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", name, c.want, err)
		}
	}
	root := copyOf(t)
	stray := filepath.Join(root, "bundle", "manifests", "configmap.stray.yaml")
	if err := os.WriteFile(stray, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stray}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run("check", root, ""); err == nil || !strings.Contains(err.Error(), "stray.yaml does not come from config/") {
		t.Errorf("a stray file: got %v", err)
	}
}

func TestAnInvalidBundleIsRefused(t *testing.T) {
	words := "config/manifests/ensign.clusterserviceversion.yaml"
	for name, c := range map[string]struct{ file, old, with, want string }{
		"a category that is none":     {words, "categories: Database", "categories: Nonsense", `value "Nonsense" is not in the set`},
		"a version that is none":      {words, "minKubeVersion: 1.36.0", "minKubeVersion: new", "MinKubeVersion"},
		"a name without the version":  {words, "name: ensign.v0.1.0", "name: ensign!", "ensign!"},
		"a field that is unknown":     {words, "maturity:", "maturitx:", "maturitx"},
		"a binding to a missing role": {"config/rbac/kustomization.yaml", "  - role.yaml\n", "", "want a role of config/rbac"},
	} {
		root := copyOf(t)
		edit(t, filepath.Join(root, c.file), c.old, c.with)
		if err := run("bundle", root, "ensign:dev"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", name, c.want, err)
		}
	}
}

func TestTheImageIsTheOneThatIsAskedFor(t *testing.T) {
	root, image := copyOf(t), "example.invalid/team/ensign@sha256:0123"
	for what, file := range map[string]string{"install": "dist/install.yaml", "bundle": "bundle/manifests/clusterserviceversion.ensign.v0.1.0.yaml"} {
		if err := run(what, root, image); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil || !strings.Contains(string(text), "image: "+image+"\n") || strings.Contains(string(text), "ensign:dev") {
			t.Errorf("%s: %s does not have the image alone (error %v)", what, file, err)
		}
	}
}
