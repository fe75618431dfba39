package runs

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/test/harness/scratch"
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
	for _, program := range []string{"ansible-runner", "ansible-playbook"} {
		if err := os.WriteFile(filepath.Join(dir, "bin", program), []byte("#!"+filepath.Join(dir, "bin", "python")+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return installation{dir: dir, site: sites[0]}
}

// fill leaves nothing but the usual distributions in site-packages.
func (i installation) fill(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(i.site); err != nil {
		t.Fatal(err)
	}
	scratch.Write(t, i.site, map[string]string{
		"ansible_core-2.21.5.dist-info/METADATA":            metadata("ansible-core", "2.21.5"),
		"ansible_runner-2.4.3.dist-info/METADATA":           metadata("ansible-runner", "2.4.3"),
		"jinja2-3.1.6.dist-info/METADATA":                   metadata("jinja2", "3.1.6"),
		"ansible_collections/kubernetes/core/MANIFEST.json": `{"collection_info": {"version": "6.6.0"}}`,
	})
}

func metadata(name, version string) string {
	return "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
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
	const kubernetes = "ansible_collections/kubernetes/core/MANIFEST.json"
	tests := map[string]struct {
		remove    string // from site-packages, before files are written there
		files     map[string]string
		wantEqual bool
	}{
		"nothing: another environment with the same in it": {wantEqual: true},
		"files that Python and people leave there": {files: map[string]string{
			"__pycache__/x.pyc": "x", "ansible_collections/__pycache__/y/x.pyc": "x", "ansible_collections/kubernetes/__pycache__/x.pyc": "x",
			"ansible_collections/kubernetes.core-6.6.0.info/GALAXY.yml": "x", "notes.txt": "x",
		}, wantEqual: true},
		"a distribution's name in another spelling": {remove: "ansible_runner-2.4.3.dist-info", files: map[string]string{
			"Ansible.Runner-2.4.3.dist-info/METADATA": metadata("Ansible.Runner", "2.4.3"),
			"ansible_runner-2.4.3.dist-info/METADATA": metadata("ansible-runner", "2.4.3"),
		}, wantEqual: true},
		"an upgraded distribution":  {remove: "jinja2-3.1.6.dist-info", files: map[string]string{"jinja2-3.1.7.dist-info/METADATA": metadata("jinja2", "3.1.7")}},
		"one distribution more":     {files: map[string]string{"kubernetes-36.0.3.dist-info/METADATA": metadata("kubernetes", "36.0.3")}},
		"one less":                  {remove: "jinja2-3.1.6.dist-info"},
		"a legacy distribution":     {files: map[string]string{"old_one-1.0-py3.13.egg-info": "Name: old-one\n"}},
		"an upgraded collection":    {files: map[string]string{kubernetes: `{"collection_info": {"version": "6.6.1"}}`}},
		"one collection more":       {files: map[string]string{"ansible_collections/ansible/mysql/MANIFEST.json": `{"collection_info": {"version": "5.2.0"}}`}},
		"a checkout that came":      {files: map[string]string{"ansible_collections/my/own/galaxy.yml": "x"}},
		"a manifest that is broken": {files: map[string]string{kubernetes: "{"}},
	}
	one, i := install(t), install(t)
	one.fill(t)
	base := one.digest(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			i.fill(t)
			if err := os.RemoveAll(filepath.Join(i.site, cmp.Or(test.remove, "nothing"))); err != nil {
				t.Fatal(err)
			}
			scratch.Write(t, i.site, test.files)
			if got := i.digest(t); (got == base) != test.wantEqual {
				t.Errorf("got %s and %s, want equal: %v", base, got, test.wantEqual)
			}
		})
	}
}
