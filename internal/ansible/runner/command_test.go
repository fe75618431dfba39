package runner

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/internal/process/rundir"
)

var someDir = &rundir.Dir{
	Private: "/runs/u/run", Project: "/runs/u/run/project", Output: "/runs/u/run/output",
	Inventory: "/runs/u/run/inventory/hosts", Kubeconfig: "/runs/u/run/kubeconfig", Temp: "/runs/u/run/tmp", SharedTemp: "/runs/.tmp",
}

func TestArgv(t *testing.T) {
	always := []string{"run", "/runs/u/run", "--json", "--ident=r1", "--artifact-dir", "/runs/u/run/output", "--inventory", "/runs/u/run/inventory/hosts"}
	tests := map[string]struct {
		runner *Runner // nil: without options
		spec   Spec
		want   []string
	}{
		"a role from its directory": {
			spec: Spec{Role: "mysql", RolesPath: "/op/roles"},
			want: []string{"--role=mysql", "--hosts", "localhost", "--roles-path=/op/roles"},
		},
		"the common roles come after the role's own directory": {
			runner: &Runner{RolesPath: []string{"/a", "/b"}},
			spec:   Spec{Role: "mysql", RolesPath: "/op/roles"},
			want:   []string{"--role=mysql", "--hosts", "localhost", "--roles-path=/op/roles:/a:/b"},
		},
		"a collection's role is found by its name": {
			spec: Spec{Role: "my.own.role"},
			want: []string{"--role=my.own.role", "--hosts", "localhost"},
		},
		"a collection's role may depend on common roles": {
			runner: &Runner{RolesPath: []string{"/a"}},
			spec:   Spec{Role: "my.own.role"},
			want:   []string{"--role=my.own.role", "--hosts", "localhost", "--roles-path=/a"},
		},
		"facts are a matter of the play that ansible-runner makes for a role": {
			runner: &Runner{SkipFacts: true},
			spec:   Spec{Role: "mysql", RolesPath: "/op/roles"},
			want:   []string{"--role=mysql", "--hosts", "localhost", "--roles-path=/op/roles", "--role-skip-facts"},
		},
		"a playbook says itself which hosts and whether facts": {
			runner: &Runner{SkipFacts: true, RolesPath: []string{"/a"}},
			spec:   Spec{Playbook: "/op/playbooks/site.yml"},
			want:   []string{"-p", "/op/playbooks/site.yml"},
		},
		"verbosity 0 is not an option at all": {
			spec: Spec{Playbook: "/p", Verbosity: 0},
			want: []string{"-p", "/p"},
		},
		"verbosity is a number of v": {
			spec: Spec{Playbook: "/p", Verbosity: 7},
			want: []string{"-vvvvvvv", "-p", "/p"},
		},
		"arguments stay one word and can't be taken for an option": {
			runner: &Runner{Args: `--vault-password-file '/a b' -e x=1`},
			spec:   Spec{Playbook: "/p", Verbosity: 1},
			want:   []string{"-v", `--cmdline=--vault-password-file '/a b' -e x=1`, "-p", "/p"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.runner == nil {
				test.runner = &Runner{}
			}
			test.spec.ID = "r1"
			want := append(slices.Clone(always), test.want...)
			if diff := cmp.Diff(want, test.runner.argv(test.spec, someDir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCommandRunsInThePrivateProject(t *testing.T) {
	r := Runner{Root: new(rundir.Root), Binary: "/env/bin/ansible-runner", Python: "/env/bin/python"}
	got := r.command(Spec{ID: "r1", Playbook: "/p"}, someDir, "/runs/.program/ensign_run.py", 5)
	if got.path != "/env/bin/python" || got.dir != someDir.Project || !slices.Equal(got.args[:2], []string{"/runs/.program/ensign_run.py", "run"}) || !slices.Contains(got.env, "JOB_ID=5") {
		t.Errorf("got %+v", got)
	}
}

func TestEnviron(t *testing.T) {
	own := map[string]string{
		"PATH": "/env/bin:/usr/bin", "JOB_ID": "77", "ANSIBLE_NOCOLOR": "true", "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost", "MAX_EVENT_RES": "9223372036854775807",
		"PYTHONPATH": ".program/guard",
		"KUBECONFIG": "/runs/u/run/kubeconfig", "K8S_AUTH_KUBECONFIG": "/runs/u/run/kubeconfig",
		"ANSIBLE_LOCAL_TEMP": "/runs/u/run/tmp", "TMPDIR": "/runs/.tmp",
	}
	tests := map[string]struct {
		runner *Runner // nil: without options
		env    []string
		want   map[string]string // besides own; "-" for a variable of own that must not be there
	}{
		"nothing but our own": {},
		"what authors rely on gets through": {
			env:  []string{"RELATED_IMAGE_DB=db:1", "WATCH_NAMESPACE=", "OPERATOR_NAME=op", "ANSIBLE_VAULT_PASSWORD_FILE=/v", "ANSIBLE_GATHERING=explicit", "WORKER_IMAGE=w", "ODD=a=b", "HOME=/h"},
			want: map[string]string{"RELATED_IMAGE_DB": "db:1", "WATCH_NAMESPACE": "", "OPERATOR_NAME": "op", "ANSIBLE_VAULT_PASSWORD_FILE": "/v", "ANSIBLE_GATHERING": "explicit", "WORKER_IMAGE": "w", "ODD": "a=b", "HOME": "/h"},
		},
		"nothing leads around the API proxy": {
			env: []string{"KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT_HTTPS=443", "KUBECONFIG=/root/.kube/config", "K8S_AUTH_HOST=h", "K8S_AUTH_API_KEY=k", "K8S_AUTH_CONTEXT=c"},
		},
		"what is meant for the manager's own process stays there": {
			env: []string{"GOMEMLIMIT=64MiB", "GOMAXPROCS=1", "GODEBUG=x", "GOGC=1", "GOTRACEBACK=all", "MAX_CONCURRENT_RECONCILES_A_B=3", "ANSIBLE_VERBOSITY_A_B=3", "ANSIBLE_DEBUG_LOGS=true"},
		},
		"nothing redirects ansible-runner": {
			env: []string{"ANSIBLE_INVENTORY=/i", "AWX_LIB_DIRECTORY=/x", "AWX_ISOLATED_DATA_DIR=/x", "AD_HOC_COMMAND_ID=1", "PROJECT_UPDATE_ID=1", "JOB_ID=1"},
		},
		"nothing empties job events": {
			env: []string{"RUNNER_OMIT_EVENTS=true", "RUNNER_ONLY_FAILED_EVENTS=true"},
		},
		"the owner's own choice is dropped, by exact name": {
			runner: &Runner{DropEnv: []string{"TOKEN", "PASS*"}},
			env:    []string{"TOKEN=t", "TOKENS=ts", "PASSWORD=p"},
			want:   map[string]string{"TOKENS": "ts", "PASSWORD": "p"},
		},
		"given paths replace the environment's": {
			runner: &Runner{RolesPath: []string{"/a", "/b"}, CollectionsPath: []string{"/c"}},
			env:    []string{"ANSIBLE_ROLES_PATH=/old", "ANSIBLE_COLLECTIONS_PATH=/old"},
			want:   map[string]string{"ANSIBLE_ROLES_PATH": "/a:/b", "ANSIBLE_COLLECTIONS_PATH": "/c"},
		},
		"without given paths the environment's stay": {
			env:  []string{"ANSIBLE_ROLES_PATH=/old", "ANSIBLE_COLLECTIONS_PATH=/old"},
			want: map[string]string{"ANSIBLE_ROLES_PATH": "/old", "ANSIBLE_COLLECTIONS_PATH": "/old"},
		},
		"what Python imports first comes before what authors want it to find": {
			env:  []string{"PYTHONPATH=/a:/b"},
			want: map[string]string{"PYTHONPATH": ".program/guard:/a:/b"},
		},
		"an empty path does not become the working directory": {
			env: []string{"PYTHONPATH="},
		},
		"colours stay for who asks for them": {
			env:  []string{"ANSIBLE_FORCE_COLOR=1"},
			want: map[string]string{"ANSIBLE_FORCE_COLOR": "1", "ANSIBLE_NOCOLOR": "-"},
		},
		"requests to the API proxy do not go through an HTTP proxy": {
			env:  []string{"HTTPS_PROXY=http://p", "NO_PROXY=.svc"},
			want: map[string]string{"HTTPS_PROXY": "http://p", "NO_PROXY": ".svc,127.0.0.1,localhost", "no_proxy": ".svc,127.0.0.1,localhost"},
		},
		"the same in lower case and without exceptions": {
			env:  []string{"http_proxy=http://p"},
			want: map[string]string{"http_proxy": "http://p", "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"},
		},
		"exceptions in lower case hold for both spellings": {
			env:  []string{"https_proxy=http://p", "no_proxy=.svc"},
			want: map[string]string{"https_proxy": "http://p", "NO_PROXY": ".svc,127.0.0.1,localhost", "no_proxy": ".svc,127.0.0.1,localhost"},
		},
		"a task may name an HTTP proxy": {
			want: map[string]string{"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"},
		},
		"all addresses are exceptions": {
			env:  []string{"HTTPS_PROXY=http://p", "NO_PROXY=*"},
			want: map[string]string{"HTTPS_PROXY": "http://p", "NO_PROXY": "*", "no_proxy": "*"},
		},
		"a successor finds the processes of all runs, also below a run that started this manager": {
			runner: &Runner{Reaper: proctree.NewReaper("/runs", "mine")},
			env:    []string{"ENSIGN_RUN_ROOT=/outer", "ENSIGN_MANAGER=outer"},
			want:   map[string]string{"ENSIGN_RUN_ROOT": "/runs", "ENSIGN_MANAGER": "mine"},
		},
		"the last of two values wins, and what is no variable is left out": {
			env:  []string{"A=1", "A=2", "broken", "=x"},
			want: map[string]string{"A": "2"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.runner == nil {
				test.runner = &Runner{}
			}
			test.runner.Root, test.runner.Binary = new(rundir.Root), "/env/bin/ansible-runner"
			test.runner.Env = append([]string{"PATH=/usr/bin"}, test.env...)
			want := maps.Clone(own)
			maps.Copy(want, test.want)
			maps.DeleteFunc(want, func(_, value string) bool { return value == "-" })
			if diff := cmp.Diff(process.Entries(want), test.runner.environ(someDir, 77)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEnvironWithoutAPath(t *testing.T) {
	r := Runner{Root: new(rundir.Root), Binary: "/env/bin/ansible-runner"}
	if got := r.environ(someDir, 1); !slices.Contains(got, "PATH=/env/bin:/usr/local/bin:/usr/bin:/bin") {
		t.Errorf("got %q", got)
	}
}

func TestNonces(t *testing.T) {
	seen := map[int64]bool{}
	large := false
	for range 1000 {
		n, err := process.NewNonce()
		if err != nil || n <= 0 || seen[n] {
			t.Fatalf("got %d (error %v), want a positive number that was not there before", n, err)
		}
		seen[n] = true
		large = large || n > 1<<62
	}
	if !large {
		t.Error("no nonce used all of its 63 bits")
	}
}

func TestWithoutRandomNames(t *testing.T) {
	const project = "/runs/u/run/project"
	tests := map[string]struct{ output, want string }{
		"the generated playbook gets one name": {
			output: "Origin: " + project + "/e1ffcb03e92144af89b51959bfa85db0:1\nnot found in " + project + "/roles:" + project + ", " + project + "/00000000000000000000000000000000",
			want:   "Origin: " + project + "/play:1\nnot found in " + project + "/roles:" + project + ", " + project + "/play",
		},
		"other files keep theirs": {
			output: "/x/e1ffcb03e92144af89b51959bfa85db0 " + project + "/e1ffcb03e92144af89b51959bfa85db0a",
			want:   "/x/e1ffcb03e92144af89b51959bfa85db0 " + project + "/e1ffcb03e92144af89b51959bfa85db0a",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, withoutRandomNames(test.output, project)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
