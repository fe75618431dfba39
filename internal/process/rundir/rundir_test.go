package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const uid = "6f1c2d34-0000-4000-8000-000000000001"

func open(t *testing.T) (*Root, string) {
	t.Helper()
	path := filepath.Join(scratch.Short(t), "made", "runs")
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, path
}

func prepare(t *testing.T, r *Root, id string, in Inputs) *Dir {
	t.Helper()
	d, err := r.Prepare(uid, id, in)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func closeDir(t *testing.T, d *Dir, keep int) {
	t.Helper()
	if err := d.Close(keep); err != nil {
		t.Fatal(err)
	}
}

func writeAll(t *testing.T, files map[string]string) {
	t.Helper()
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tree returns all entries below dir with their modes, and the content of files.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		got[rel] = info.Mode().String()
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			got[rel] += " " + string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestPrepareLaysOutTheRun(t *testing.T) {
	// A umask of 0277 would leave files that the owner can't write and
	// directories that nobody can use.
	path := filepath.Join(t.TempDir(), "runs")
	old := syscall.Umask(0o277)
	defer syscall.Umask(old)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	d := prepare(t, r, "run-1", Inputs{ExtraVars: []byte("\t\n{}"), Kubeconfig: []byte("kind: Config"), Python: "/it's/python", Pipelining: true})
	private := filepath.Join(path, uid, "run")
	want := map[string]string{
		".":               "drwx------",
		"env":             "drwx------",
		"env/extravars":   "-rw------- \t\n{}",
		"env/settings":    "-rw------- " + runnerSettings,
		"inventory":       "drwx------",
		"inventory/hosts": "-rw------- localhost ansible_connection=local ansible_remote_tmp='" + private + "/tmp/remote' ansible_async_dir='" + private + "/tmp/async' ansible_python_interpreter='/it'\"'\"'s/python' ansible_pipelining=True\n",
		"kubeconfig":      "-rw------- kind: Config",
		"output":          "drwx------",
		"project":         "drwx------",
		"tmp":             "drwx------",
		"tmp/remote":      "drwx------",
	}
	if diff := cmp.Diff(want, tree(t, private)); diff != "" {
		t.Error(diff)
	}
	paths := []string{d.Private, d.Project, d.Output, d.Inventory, d.Kubeconfig, d.Temp}
	wantPaths := []string{private, private + "/project", private + "/output", private + "/inventory/hosts", private + "/kubeconfig", private + "/tmp"}
	if diff := cmp.Diff(wantPaths, paths); diff != "" {
		t.Error(diff)
	}
	f, err := d.Create("events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	closeDir(t, d, 0)
	var kept []string
	for name, what := range tree(t, path) {
		kept = append(kept, strings.Split(what, " ")[0]+" "+filepath.Base(name))
	}
	slices.Sort(kept)
	wantKept := []string{"-rw------- .lock", "drwx------ .tmp", "-rw------- events.jsonl", "drwx------ .", "drwx------ " + filepath.Base(d.artifact), "drwx------ " + uid, "drwx------ artifacts"}
	slices.Sort(wantKept)
	if diff := cmp.Diff(wantKept, kept); diff != "" {
		t.Error(diff)
	}
}

func TestPrepareRemovesWhatAnEarlierRunLeft(t *testing.T) {
	r, path := open(t)
	stray := []string{"args", "env/cmdline", "env/envvars", "env/passwords", "project/ansible.cfg", "output/run-0/command"}
	for _, name := range stray {
		writeAll(t, map[string]string{filepath.Join(path, uid, "run", name): "stray"})
	}
	d := prepare(t, r, "run-1", Inputs{})
	for _, name := range stray {
		if exists(filepath.Join(d.Private, name)) {
			t.Errorf("%q is still there", name)
		}
	}
	closeDir(t, d, 0)
}

func TestOneRunAtATime(t *testing.T) {
	r, _ := open(t)
	d := prepare(t, r, "run-1", Inputs{})
	if _, err := r.Prepare(uid, "run-2", Inputs{}); !errors.Is(err, ErrBusy) {
		t.Errorf("got error %v for a second run, want ErrBusy", err)
	}
	if err := r.Remove(uid); !errors.Is(err, ErrBusy) {
		t.Errorf("got error %v for removing, want ErrBusy", err)
	}
	if removed, err := r.Sweep(func(string) bool { return false }); err != nil || removed != nil {
		t.Errorf("got %q swept (error %v), want nothing", removed, err)
	}
	if !exists(filepath.Join(d.Private, "env", "extravars")) {
		t.Error("the live run's directory is gone")
	}
	closeDir(t, d, 0)
	closeDir(t, prepare(t, r, "run-2", Inputs{}), 0)
	if err := r.Remove(uid); err != nil {
		t.Error(err)
	}
}

func TestAFailedPrepareLetsTheNextRunIn(t *testing.T) {
	r, path := open(t)
	if _, err := r.Prepare(uid, "run-1", Inputs{Kubeconfig: []byte("token"), Inventory: "/does/not/exist"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want one for the inventory", err)
	}
	if exists(filepath.Join(path, uid, "run")) {
		t.Error("the directory with the kubeconfig is left")
	}
	closeDir(t, prepare(t, r, "run-2", Inputs{}), 0)
}

func TestNamesAreChecked(t *testing.T) {
	bad := map[string]string{
		"empty":                         "",
		"this directory":                ".",
		"the directory above":           "..",
		"a path upwards":                "../other",
		"a path downwards":              "a/b",
		"an absolute path":              "/etc",
		"hidden, as our own files are":  ".lock",
		"an option to some program":     "-rf",
		"a NUL":                         "a\x00b",
		"a line feed at the end":        "a\n",
		"a backslash":                   `a\..\b`,
		"longer than file systems take": strings.Repeat("a", 129),
		"not ASCII":                     "ä",
	}
	for name, value := range bad {
		t.Run(name, func(t *testing.T) {
			r, path := open(t)
			writeAll(t, map[string]string{filepath.Join(filepath.Dir(path), "other", "file"): "outside"})
			before := tree(t, filepath.Dir(path))
			if _, err := r.Prepare(value, "run", Inputs{}); err == nil {
				t.Error("got no error for the UID")
			}
			if _, err := r.Prepare(uid, value, Inputs{}); err == nil {
				t.Error("got no error for the run id")
			}
			if err := r.Remove(value); err == nil {
				t.Error("got no error from Remove")
			}
			if diff := cmp.Diff(before, tree(t, filepath.Dir(path))); diff != "" {
				t.Errorf("something was changed: %s", diff)
			}
			d := prepare(t, r, "run", Inputs{})
			if _, err := d.Create(value); err == nil {
				t.Error("got no error for the artifact")
			}
			closeDir(t, d, 0)
		})
	}
}

func TestPlantedLinksAreNotFollowed(t *testing.T) {
	for _, planted := range []string{uid, uid + "/run", uid + "/artifacts"} {
		for _, target := range []string{"outside the root", "inside the root"} {
			t.Run(planted+" to a directory "+target, func(t *testing.T) {
				r, path := open(t)
				victim := filepath.Join(filepath.Dir(path), "victim")
				if target == "inside the root" {
					victim = filepath.Join(path, "another-uid")
				}
				old := artifactPath(victim, "old")
				writeAll(t, map[string]string{filepath.Join(victim, "env", "settings"): "theirs", filepath.Join(old, "file"): "theirs", filepath.Join(path, "x"): ""})
				link := filepath.Join(path, planted)
				if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(victim, link); err != nil {
					t.Fatal(err)
				}
				before := tree(t, victim)
				closeDir(t, prepare(t, r, "run-1", Inputs{ExtraVars: []byte("ours")}), 1)
				closeDir(t, prepare(t, r, "run-2", Inputs{ExtraVars: []byte("ours")}), 1)
				if err := r.Remove(uid); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(before, tree(t, victim)); diff != "" {
					t.Errorf("what the link points to was changed: %s", diff)
				}
			})
		}
	}
}

func artifactPath(dir, id string) string {
	return filepath.Join(dir, "20200101T000000.000000000Z-"+id)
}

func TestRotation(t *testing.T) {
	tests := map[string]struct {
		keep int
		want int
	}{
		"0 keeps all":                       {keep: 0, want: 5},
		"a negative number keeps all too":   {keep: -1, want: 5},
		"1 keeps the newest":                {keep: 1, want: 1},
		"3 keeps the three newest":          {keep: 3, want: 3},
		"more than there are keeps all":     {keep: 9, want: 5},
		"exactly as many as there are, all": {keep: 5, want: 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, path := open(t)
			var made []string
			for _, id := range []string{"e", "d", "c", "b"} {
				d := prepare(t, r, id, Inputs{})
				made = append(made, d.artifact)
				closeDir(t, d, 0)
			}
			d := prepare(t, r, "a", Inputs{})
			made = append(made, d.artifact)
			closeDir(t, d, test.keep)
			var got []string
			for name := range tree(t, filepath.Join(path, uid, "artifacts")) {
				if name != "." {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(made[5-test.want:], got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRotationRemovesOnlyItsOwn(t *testing.T) {
	r, path := open(t)
	artifacts := filepath.Join(path, uid, "artifacts")
	outside := filepath.Join(filepath.Dir(path), "outside")
	kept := []string{
		"notes/file", "20200101/file", "20200101T000000.000000000Z/file", "20200101T000000.000000000Z-/file",
		"20200101T000000.000000000Z-a file", "x20200101T000000.000000000Z-a/file", "20200101T000000.000000000Z-.hidden/file",
	}
	files := map[string]string{filepath.Join(outside, "file"): "theirs", artifactPath(artifacts, "regular"): "a file"}
	for _, name := range kept {
		files[filepath.Join(artifacts, name)] = "theirs"
	}
	writeAll(t, files)
	if err := os.Symlink(outside, artifactPath(artifacts, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(artifactPath(artifacts, "ours"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(artifactPath(artifacts, "ours"), "link")); err != nil {
		t.Fatal(err)
	}
	closeDir(t, prepare(t, r, "run-1", Inputs{}), 1)
	for path := range files {
		if !exists(path) {
			t.Errorf("%q is gone", path)
		}
	}
	if !exists(artifactPath(artifacts, "link")) || exists(artifactPath(artifacts, "ours")) {
		t.Error("got the link removed or the old artifact kept, want the opposite")
	}
}

func TestTemporaryFilesGoWithTheLastRun(t *testing.T) {
	for where, name := range map[string]string{"in the run directory": "runs", "elsewhere": tooLong} {
		t.Run(where, func(t *testing.T) { testTemporaryFilesGoWithTheLastRun(t, name) })
	}
}

func testTemporaryFilesGoWithTheLastRun(t *testing.T, name string) {
	t.Helper()
	r, err := Open(filepath.Join(scratch.Short(t), name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	first := prepare(t, r, "run-1", Inputs{})
	second, err := r.Prepare("another-uid", "run-2", Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	temp := first.SharedTemp
	if second.SharedTemp != temp {
		t.Errorf("got %q and %q, want one directory for all runs", temp, second.SharedTemp)
	}
	outside := filepath.Join(t.TempDir(), "file")
	writeAll(t, map[string]string{
		filepath.Join(temp, "payload", "zip"): "", filepath.Join(temp, "tmpca"): "", filepath.Join(temp, "k8srcp-1.json"): "cache",
		filepath.Join(temp, "k8srcp-dir", "file"): "", outside: "theirs",
	})
	if err := os.Symlink(outside, filepath.Join(temp, "k8srcp-link")); err != nil {
		t.Fatal(err)
	}
	before := tree(t, temp)
	closeDir(t, first, 0)
	if diff := cmp.Diff(before, tree(t, temp)); diff != "" {
		t.Errorf("something was removed while a run was live: %s", diff)
	}
	closeDir(t, second, 0)
	want := map[string]string{".": "drwx------", "k8srcp-1.json": "-rw------- cache"}
	if diff := cmp.Diff(want, tree(t, temp)); diff != "" {
		t.Error(diff)
	}
	if !exists(outside) {
		t.Error("what a link points to was removed")
	}
}

// If there always is a live run, there is no moment at which all temporary files can be
// removed.
func TestTemporaryFilesOfProcessesGoWithTheRunsThatMayHaveMadeThem(t *testing.T) {
	r, err := Open(filepath.Join(scratch.Short(t), "runs"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	begin := func(uid string) *Dir {
		d, err := r.Prepare(uid, "run", Inputs{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := begin("first")
	temp := first.SharedTemp
	wantTemp := func(when string, want ...string) {
		t.Helper()
		entries, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	writeAll(t, map[string]string{filepath.Join(temp, "ansible_kubernetes.core.k8s_payload_0aaaaaa_", "zip"): "", filepath.Join(temp, "k8srcp-1.json"): "", filepath.Join(temp, "named"): ""})
	second := begin("second")
	writeAll(t, map[string]string{filepath.Join(temp, "pymp-bbbbbbbb", "socket"): ""})
	closeDir(t, first, 0)
	third := begin("third")
	writeAll(t, map[string]string{filepath.Join(temp, "tmpcccccccc"): ""})
	first = begin("first")
	wantTemp("the second run is live, and may have made what the first one left",
		"ansible_kubernetes.core.k8s_payload_0aaaaaa_", "k8srcp-1.json", "named", "pymp-bbbbbbbb", "tmpcccccccc")
	closeDir(t, second, 0)
	wantTemp("the third run is live", "k8srcp-1.json", "named", "tmpcccccccc")
	closeDir(t, third, 0)
	wantTemp("the first one is live again, which was so when the rest was looked at", "k8srcp-1.json", "named", "tmpcccccccc")
	fourth := begin("fourth")
	closeDir(t, first, 0)
	wantTemp("all are live that began later", "k8srcp-1.json", "named")
	closeDir(t, fourth, 0)
	wantTemp("none is live", "k8srcp-1.json")
}

func TestSweep(t *testing.T) {
	r, path := open(t)
	for _, u := range []string{"kept", "gone-1", "gone-2"} {
		d, err := r.Prepare(u, "run", Inputs{})
		if err != nil {
			t.Fatal(err)
		}
		closeDir(t, d, 0)
	}
	writeAll(t, map[string]string{filepath.Join(path, ".other", "file"): "", filepath.Join(path, "a-file"): ""})
	removed, err := r.Sweep(func(uid string) bool { return uid == "kept" })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gone-1", "gone-2"}, removed); diff != "" {
		t.Error(diff)
	}
	uids, err := r.UIDs()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"kept"}, uids); diff != "" {
		t.Error(diff)
	}
	if !exists(filepath.Join(path, ".other", "file")) || !exists(filepath.Join(path, "a-file")) {
		t.Error("what this package did not make is gone")
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := map[string]struct {
		arrange func(t *testing.T, path string)
		want    string
	}{
		"a symbolic link, which could be pointed elsewhere later": {
			arrange: func(t *testing.T, path string) {
				if err := errors.Join(os.Mkdir(path+"-target", 0o700), os.Symlink(path+"-target", path)); err != nil {
					t.Fatal(err)
				}
			}, want: "symbolic link",
		},
		"a directory in which everybody can write": {
			arrange: func(t *testing.T, path string) {
				if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777)); err != nil {
					t.Fatal(err)
				}
			}, want: "written by others",
		},
		"a directory in which the group can write": {
			arrange: func(t *testing.T, path string) {
				if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o770)); err != nil {
					t.Fatal(err)
				}
			}, want: "written by others",
		},
		"a file": {
			arrange: func(t *testing.T, path string) { writeAll(t, map[string]string{path: ""}) },
			want:    "not a directory",
		},
		"a directory of somebody else's, whose directories would be taken for those of resources that are gone": {
			arrange: func(t *testing.T, path string) {
				writeAll(t, map[string]string{filepath.Join(path, "roles", "website", "tasks", "main.yml"): "[]"})
			}, want: `holds "roles"`,
		},
		"a directory of somebody else's with a name that this package uses too": {
			arrange: func(t *testing.T, path string) {
				writeAll(t, map[string]string{filepath.Join(path, "bin", "run", "x"): "", filepath.Join(path, "bin", "stop"): ""})
			}, want: `holds "bin"`,
		},
		"a directory that another manager uses": {
			arrange: func(t *testing.T, path string) {
				r, err := Open(path)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = r.Close() })
			}, want: "another manager",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "runs")
			test.arrange(t, path)
			before := tree(t, filepath.Dir(path))
			r, err := Open(path)
			if err == nil {
				_ = r.Close()
			}
			if diff := cmp.Diff(before, tree(t, filepath.Dir(path))); diff != "" {
				t.Errorf("something was changed: %s", diff)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// Only root can make a directory that belongs to another user, so the test calls the
// check with a FileInfo.
func TestCheckPrivateRefusesAnotherUsersDirectory(t *testing.T) {
	info, err := os.Lstat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := checkPrivate(info); err != nil {
		t.Errorf("got error %v for our own", err)
	}
	stat := *info.Sys().(*syscall.Stat_t)
	stat.Uid++
	if err := checkPrivate(foreign{info, &stat}); err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Errorf("got error %v, want one about the owner", err)
	}
}

type foreign struct {
	fs.FileInfo
	stat *syscall.Stat_t
}

func (f foreign) Sys() any { return f.stat }

func TestOpenTightensAndTakesOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	writeAll(t, map[string]string{
		filepath.Join(path, uid, "run", "kubeconfig"):                       "token",
		filepath.Join(path, uid, "artifacts", "notes"):                      "kept",
		filepath.Join(path, trashPrefix+"x", "kubeconfig"):                  "token",
		filepath.Join(path, uid, trashPrefix+"x", "kubeconfig"):             "token",
		filepath.Join(path, ".tmp", "k8srcp-of-another-address"):            "cache",
		filepath.Join(path, "another-uid", "run", "output", "a", "command"): "environment",
	})
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		".": "drwx------", ".lock": "-rw------- " + holderOf(r.lock) + "\n", ".tmp": "drwx------", "another-uid": "drwx------",
		uid: "drwx------", uid + "/artifacts": "drwx------", uid + "/artifacts/notes": "-rw------- kept",
	}
	if diff := cmp.Diff(want, tree(t, path)); diff != "" {
		t.Error(diff)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatalf("the directory can't be opened again: %v", err)
	}
	_ = again.Close()
}

func TestInventoryIsCopied(t *testing.T) {
	source := t.TempDir()
	writeAll(t, map[string]string{
		filepath.Join(source, "dir", "group_vars", "all.yml"): "a: 1",
		filepath.Join(source, "dir", "script"):                "#!/bin/sh",
		filepath.Join(source, "dir", "..data", "hosts"):       "h",
		filepath.Join(source, "hosts.ini"):                    "h",
	})
	if err := errors.Join(os.Chmod(filepath.Join(source, "dir", "script"), 0o755), os.Symlink("..data/hosts", filepath.Join(source, "dir", "hosts"))); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		inventory string
		wantPath  string
		want      map[string]string
	}{
		"a directory as a mounted ConfigMap has it: links become files, ..data is left out": {
			inventory: "dir", wantPath: "inventory",
			want: map[string]string{
				".": "drwx------", "group_vars": "drwx------", "group_vars/all.yml": "-rw------- a: 1",
				"hosts": "-rw------- h", "script": "-rwx------ #!/bin/sh",
			},
		},
		"a file keeps its name, which tells Ansible its format": {
			inventory: "hosts.ini", wantPath: "inventory/hosts.ini",
			want: map[string]string{".": "drwx------", "hosts.ini": "-rw------- h"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, _ := open(t)
			d := prepare(t, r, "run", Inputs{Inventory: filepath.Join(source, test.inventory)})
			if got := strings.TrimPrefix(d.Inventory, d.Private+"/"); got != test.wantPath {
				t.Errorf("got path %q, want %q", got, test.wantPath)
			}
			if diff := cmp.Diff(test.want, tree(t, filepath.Join(d.Private, "inventory"))); diff != "" {
				t.Error(diff)
			}
			closeDir(t, d, 0)
		})
	}
}

func TestInventoryThatCannotBeCopied(t *testing.T) {
	tests := map[string]struct {
		arrange func(t *testing.T, dir string) string
		want    string
	}{
		"a directory that contains itself": {
			arrange: func(t *testing.T, dir string) string {
				if err := os.Symlink(".", filepath.Join(dir, "loop")); err != nil {
					t.Fatal(err)
				}
				return dir
			}, want: "nested deeper",
		},
		"a pipe, which would be waited for": {
			arrange: func(t *testing.T, dir string) string {
				if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
					t.Fatal(err)
				}
				return dir
			}, want: "neither a file",
		},
		"more than anybody means": {
			arrange: func(t *testing.T, dir string) string {
				path := filepath.Join(dir, "large")
				writeAll(t, map[string]string{path: ""})
				if err := os.Truncate(path, maxInventoryBytes+1); err != nil {
					t.Fatal(err)
				}
				return path
			}, want: "larger than",
		},
		"nothing there": {
			arrange: func(_ *testing.T, dir string) string { return filepath.Join(dir, "missing") },
			want:    "no such file",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, _ := open(t)
			_, err := r.Prepare(uid, "run", Inputs{Inventory: test.arrange(t, t.TempDir())})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestPathsThatDoNotFitIntoTheInventory(t *testing.T) {
	r, _ := open(t)
	if _, err := r.Prepare(uid, "run", Inputs{Python: "/a\nlocalhost2"}); err == nil {
		t.Error("got no error for a line break")
	}
}

func TestCheckWrittenFindsWhatAnsibleRunnerWouldIgnore(t *testing.T) {
	r, path := open(t)
	d := prepare(t, r, "run", Inputs{ExtraVars: []byte("abc")})
	defer closeDir(t, d, 0)
	run, err := os.OpenRoot(d.Private)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	vars := filepath.Join(path, uid, "run", "env", "extravars")
	tests := map[string]func() error{
		"another size": func() error { return os.WriteFile(vars, []byte("ab"), 0o600) },
		"missing":      func() error { return os.Remove(vars) },
		"a pipe":       func() error { return syscall.Mkfifo(vars, 0o600) },
	}
	if err := checkWritten(run, "env/extravars", 3); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"another size", "missing", "a pipe"} {
		if err := tests[name](); err != nil {
			t.Fatal(err)
		}
		if err := checkWritten(run, "env/extravars", 3); err == nil {
			t.Errorf("got no error when it is %s", name)
		}
	}
}
