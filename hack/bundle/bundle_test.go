package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// words are the parts of a ClusterServiceVersion that the validators want.
const words = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: shop.v0.1.0, annotations: {capabilities: Basic Install, categories: Database}}
spec:
  displayName: Shop
  version: 0.1.0
  maturity: alpha
  minKubeVersion: 1.35.0
  description: Sells.
  provider: {name: Shop}
  installModes: [{type: AllNamespaces, supported: true}]
  install: {strategy: deployment, spec: {deployments: []}}
`

func TestAnInvalidBundleIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ old, with, want string }{
		"a category that is none":    {"categories: Database", "categories: Nonsense", `value "Nonsense" is not in the set`},
		"a version that is none":     {"minKubeVersion: 1.35.0", "minKubeVersion: new", "MinKubeVersion"},
		"a name without the version": {"name: shop.v0.1.0", "name: shop!", "shop!"},
		"a field that is unknown":    {"maturity:", "maturitx:", "maturitx"},
		"a bundle that is valid":     {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			for path, text := range map[string]string{
				"manifests/clusterserviceversion.shop.yaml": strings.Replace(words, c.old, c.with, 1),
				"metadata/annotations.yaml":                 "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  operators.operatorframework.io.bundle.package.v1: shop\n",
			} {
				path = filepath.Join(out, "bundle", path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			switch err := run("validate", "../..", out, ""); {
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("want an error with %q, got %v", c.want, err)
			}
		})
	}
}

func TestTheImageIsTheOneThatIsAskedFor(t *testing.T) {
	out, image := t.TempDir(), "example.invalid/team/ensign@sha256:0123"
	if err := run("install", "../..", out, image); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, "install.yaml"))
	if err != nil || !strings.Contains(string(text), "image: "+image+"\n") || strings.Contains(string(text), "ensign:dev") {
		t.Errorf("it does not have the image alone (error %v)", err)
	}
}
