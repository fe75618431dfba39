package runs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
)

// installation is an environment of the real Python in which only the names of
// things are installed.
type installation struct{ dir, site string }

func install(t *testing.T) installation {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.CommandContext(t.Context(), environment(t).Python, "-m", "venv", "--without-pip", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sites, err := filepath.Glob(filepath.Join(dir, "lib", "python3*", "site-packages"))
	if err != nil || len(sites) != 1 {
		t.Fatalf("site-packages are %q (error %v)", sites, err)
	}
	i := installation{dir: dir, site: sites[0]}
	for _, program := range []string{"ansible-runner", "ansible-playbook"} {
		i.write(t, filepath.Join(dir, "bin", program), "#!"+filepath.Join(dir, "bin", "python")+"\n")
	}
	i.distribution(t, "ansible_core", "2.21.5")
	i.distribution(t, "ansible_runner", "2.4.3")
	i.distribution(t, "jinja2", "3.1.6")
	i.collection(t, "kubernetes/core", "6.6.0")
	return i
}

func (i installation) write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		t.Fatal(err)
	}
}

func (i installation) remove(t *testing.T, pattern string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(i.site, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%q names %q (error %v)", pattern, paths, err)
	}
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

func (i installation) distribution(t *testing.T, name, version string) {
	t.Helper()
	i.write(t, filepath.Join(i.site, name+"-"+version+".dist-info", "METADATA"),
		"Metadata-Version: 2.1\nName: "+strings.ReplaceAll(name, "_", "-")+"\nVersion: "+version+"\n")
}

func (i installation) collection(t *testing.T, path, version string) {
	t.Helper()
	i.write(t, filepath.Join(i.site, "ansible_collections", path, "MANIFEST.json"), `{"collection_info": {"version": "`+version+`"}}`)
}

func (i installation) digest(t *testing.T) string {
	t.Helper()
	env, err := pyenv.Find(pyenv.Search{Dir: i.dir, Environ: []string{"VIRTUAL_ENV=" + i.dir, "PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := env.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.Digest
}

func TestDigestStandsForWhatIsInstalled(t *testing.T) {
	tests := map[string]struct {
		change    func(*testing.T, installation)
		wantEqual bool
	}{
		"nothing: another environment with the same in it": {func(*testing.T, installation) {}, true},
		"files that Python and people leave there": {func(t *testing.T, i installation) {
			i.write(t, filepath.Join(i.site, "__pycache__", "x.pyc"), "x")
			i.write(t, filepath.Join(i.site, "ansible_collections", "__pycache__", "y", "x.pyc"), "x")
			i.write(t, filepath.Join(i.site, "ansible_collections", "kubernetes", "__pycache__", "x.pyc"), "x")
			i.write(t, filepath.Join(i.site, "ansible_collections", "kubernetes.core-6.6.0.info", "GALAXY.yml"), "x")
			i.write(t, filepath.Join(i.site, "notes.txt"), "x")
		}, true},
		"a distribution's name in another spelling": {func(t *testing.T, i installation) {
			i.remove(t, "ansible_runner-*")
			i.distribution(t, "Ansible.Runner", "2.4.3")
			i.distribution(t, "ansible_runner", "2.4.3")
		}, true},
		"an upgraded distribution": {func(t *testing.T, i installation) {
			i.remove(t, "jinja2-*")
			i.distribution(t, "jinja2", "3.1.7")
		}, false},
		"one distribution more": {func(t *testing.T, i installation) { i.distribution(t, "kubernetes", "36.0.3") }, false},
		"one less":              {func(t *testing.T, i installation) { i.remove(t, "jinja2-*") }, false},
		"a legacy distribution": {func(t *testing.T, i installation) {
			i.write(t, filepath.Join(i.site, "old_one-1.0-py3.13.egg-info"), "Name: old-one\n")
		}, false},
		"an upgraded collection": {func(t *testing.T, i installation) { i.collection(t, "kubernetes/core", "6.6.1") }, false},
		"one collection more":    {func(t *testing.T, i installation) { i.collection(t, "ansible/mysql", "5.2.0") }, false},
		"a checkout that came": {func(t *testing.T, i installation) {
			i.write(t, filepath.Join(i.site, "ansible_collections/my/own/galaxy.yml"), "x")
		}, false},
		"a manifest that is broken": {func(t *testing.T, i installation) {
			i.write(t, filepath.Join(i.site, "ansible_collections/kubernetes/core/MANIFEST.json"), "{")
		}, false},
	}
	base := install(t).digest(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			i := install(t)
			test.change(t, i)
			if got := i.digest(t); (got == base) != test.wantEqual {
				t.Errorf("got %s and %s, want equal: %v", base, got, test.wantEqual)
			}
		})
	}
}
