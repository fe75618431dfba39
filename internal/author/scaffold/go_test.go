package scaffold

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// inGo returns the directory of a project with reconcilers in Go.
func inGo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	plan, err := Init(dir, Project{Domain: "myorg.tld", ProjectName: "ensign", Program: "ensign", Repo: "example.com/shop", Source: "/ensign"})
	written(t, plan, err)
	return dir
}

// TestAModuleNeedsWhatThisOneHas: with an older controller-runtime than this module's, go mod tidy
// would change what init has written, and with a newer one it might not build.
func TestAModuleNeedsWhatThisOneHas(t *testing.T) {
	versions := func(path string) (*modfile.File, map[string]string) {
		file, err := modfile.Parse(path, []byte(read(t, path)), nil)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, r := range file.Require {
			all[r.Mod.Path] = r.Mod.Version
		}
		return file, all
	}
	ours, here := versions(filepath.Join(scratch.Repository(t), "go.mod"))
	dir := inGo(t)
	theirs, there := versions(filepath.Join(dir, "go.mod"))
	if theirs.Module.Mod.Path != "example.com/shop" || theirs.Go.Version != ours.Go.Version {
		t.Errorf("module %s, go %s", theirs.Module.Mod.Path, theirs.Go.Version)
	}
	for path, version := range there {
		if path != ours.Module.Mod.Path && version != here[path] {
			t.Errorf("%s %s, and here %s", path, version, here[path])
		}
	}
	pinned := read(t, scratch.Repository(t), "hack/tools/controller-gen/go.mod")
	_, version, _ := strings.Cut(pinned, "sigs.k8s.io/controller-tools ")
	version, _, _ = strings.Cut(version, " ")
	if !strings.Contains(read(t, dir, "Makefile"), "/cmd/controller-gen@"+version+"\n") {
		t.Errorf("the Makefile has not the controller-gen %s of the tests", version)
	}
	if len(theirs.Replace) != 1 || theirs.Replace[0].New.Path != "/ensign" {
		t.Errorf("want Ensign replaced by the clone, got %v", theirs.Replace)
	}
}

// TestKubebuilderAndCreateAPIShareLists: kubebuilder adds its items above its markers, in the column of
// the key.
func TestKubebuilderAndCreateAPIShareLists(t *testing.T) {
	dir := inGo(t)
	for _, first := range []bool{true, false} {
		for path, item := range map[string]string{"config/crd/kustomization.yaml": "bases/b.yaml", "config/samples/kustomization.yaml": "b.yaml"} {
			if first {
				continue
			}
			text := read(t, dir, path)
			if !strings.Contains(text, "\n# +kubebuilder:scaffold:") {
				t.Fatalf("%s has no marker:\n%s", path, text)
			}
			scratch.Write(t, dir, map[string]string{path: strings.Replace(text, "\n# +kubebuilder:scaffold:", "\n- "+item+"\n# +kubebuilder:scaffold:", 1)})
		}
		kind := cluster()
		if !first {
			kind.Kind = "MySQLUser"
		}
		plan, err := CreateAPI(dir, kind)
		written(t, plan, err)
	}
	for path, want := range map[string]string{
		"config/crd/kustomization.yaml":     "\nresources:\n- bases/myapp.myorg.tld_mysqlclusters.yaml\n- bases/b.yaml\n- bases/myapp.myorg.tld_mysqlusers.yaml\n# +kubebuilder:scaffold:crdkustomizeresource\n",
		"config/samples/kustomization.yaml": "\nresources:\n- myapp_v1_mysqlcluster.yaml\n- b.yaml\n- myapp_v1_mysqluser.yaml\n# +kubebuilder:scaffold:manifestskustomizesamples\n",
		"config/rbac/kustomization.yaml":    "\n- metrics_reader_role.yaml\n- mysqlcluster_admin_role.yaml\n",
	} {
		if text := read(t, dir, path); !strings.Contains(text, want) {
			t.Errorf("want %q in %s, got\n%s", want, path, text)
		}
		parsed(t, dir, path)
	}
}

// TestTheExampleIsAProjectOfInit keeps examples/hybrid, which was begun by init, from drifting. What is
// left out grows by create api and by kubebuilder, or is the example's own.
func TestTheExampleIsAProjectOfInit(t *testing.T) {
	dir, example := t.TempDir(), filepath.Join(scratch.Repository(t), "examples", "hybrid")
	plan, err := Init(dir, Project{Domain: "my.domain", ProjectName: "hybrid", Program: "ensign", Repo: "github.com/ensign-operator/ensign/examples/hybrid", Schema: watches.Schema()})
	written(t, plan, err)
	grown := strings.Fields(`PROJECT README.md cmd/main.go go.mod watches.yaml roles/.gitkeep molecule/default/converge.yml config/rbac/role.yaml
		config/rbac/go_role.yaml config/crd/kustomization.yaml`)
	// Its webhook is written by hand, for a certificate that the example makes itself.
	grown = append(grown, "config/default/kustomization.yaml", "test/e2e/e2e_test.go")
	// A bundle cannot have it.
	grown = append(grown, "config/manifests/clusterserviceversion.yaml")
	byHand := regexp.MustCompile(`^(deploy: |build-installer: |(\.PHONY: |\t.*)?bundle|undeploy: |run: export |# Webhooks need certificates|    control-plane: )`)
	hasAll(t, example, dir, plan, grown, byHand)
}

// TestTheExampleOfContentIsAProjectOfInit does so for examples/etcd, which has no Go and no Molecule.
func TestTheExampleOfContentIsAProjectOfInit(t *testing.T) {
	dir, example := t.TempDir(), filepath.Join(scratch.Repository(t), "examples", "etcd")
	plan, err := Init(dir, Project{Domain: "database.coreos.com", ProjectName: "etcd-operator", Program: "ensign", Schema: watches.Schema()})
	written(t, plan, err)
	plan.files = slices.DeleteFunc(plan.files, func(f file) bool { return strings.HasPrefix(f.path, "molecule/") })
	grown := strings.Fields("PROJECT README.md watches.yaml config/rbac/role.yaml config/crd/kustomization.yaml config/samples/kustomization.yaml")
	hasAll(t, example, dir, plan, grown, regexp.MustCompile("^(test: |\tmolecule test)"))
}

// hasAll expects each line of init's files in the example, but for the files that have grown and the
// lines that were changed by hand.
func hasAll(t *testing.T, example, dir string, plan *Plan, grown []string, byHand *regexp.Regexp) {
	t.Helper()
	for _, f := range plan.files {
		if slices.Contains(grown, f.path) || isDerived(f.path) {
			continue // What is derived is this repository's own, and no example has it again.
		}
		if strings.HasPrefix(f.path, ".github/") { // A workflow counts in the root of a repository alone.
			continue
		}
		text := read(t, example, f.path)
		for line := range strings.SplitSeq(read(t, dir, f.path), "\n") {
			if !byHand.MatchString(line) && !strings.Contains(text, line) {
				t.Errorf("%s of %s lacks the line %q of init's", f.path, example, line)
			}
		}
	}
}

// TestWhatIsTheSameInGo: a project in Go has every file of one without, some of them in its own way,
// and no flag that its own main.go does not have.
func TestWhatIsTheSameInGo(t *testing.T) {
	dir, without := inGo(t), newProject(t)
	err := filepath.WalkDir(without, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(without, path)
		if err == nil && !strings.HasPrefix(filepath.ToSlash(name), chartDir) && !strings.HasPrefix(filepath.ToSlash(name), "config/overlays") {
			_, err = os.Stat(filepath.Join(dir, name))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	program := read(t, dir, "cmd/main.go")
	_, recipe, _ := strings.Cut(read(t, dir, "Makefile"), "\tANSIBLE_GATHERING=explicit bin/manager")
	recipe, _, _ = strings.Cut(recipe, "\n")
	arguments := recipe + read(t, dir, "config/manager/manager.yaml") + read(t, dir, "config/default/leader_election_patch.yaml")
	flags := regexp.MustCompile(` --([a-z][a-z-]+)`).FindAllStringSubmatch(arguments, -1)
	for _, flag := range flags {
		if !strings.Contains(program, `"`+flag[1]+`"`) {
			t.Errorf("an argument is --%s, and cmd/main.go has no such flag", flag[1])
		}
	}
	if len(flags) < 5 {
		t.Errorf("found too few flags: %q", flags)
	}
	if text := read(t, dir, "hack/go_role_header.txt"); !strings.HasPrefix(read(t, dir, "config/rbac/go_role.yaml"), text) {
		t.Errorf("go_role.yaml begins otherwise than controller-gen will write it:\n%s", text)
	}
	if _, err := Init(t.TempDir(), Project{Domain: "myorg.tld", ProjectName: "shop", Repo: "no module"}); err == nil || !strings.Contains(err.Error(), `--repo="no module"`) {
		t.Errorf("got %v", err)
	}
}
