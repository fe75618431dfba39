package runs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func TestInspect(t *testing.T) {
	info, err := environment(t).Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.AnsibleCore == "" || info.AnsibleRunner == "" || info.Python == "" {
		t.Errorf("got %+v, want all versions", info)
	}
	if !info.HasCollection("kubernetes.core") || info.HasCollection("community.sops") {
		t.Errorf("got %v, want kubernetes.core in it and community.sops not", info.CollectionDirs)
	}
}

func TestLocale(t *testing.T) {
	tests := map[string]struct {
		environ []string
		want    []string
	}{
		"none":                         {nil, []string{"LANG=C.UTF-8"}},
		"C":                            {[]string{"LC_ALL=C"}, []string{"LANG=C.UTF-8"}},
		"POSIX":                        {[]string{"LANG=POSIX"}, []string{"LANG=C.UTF-8"}},
		"one that is not installed":    {[]string{"LC_ALL=xx_XX.UTF-8"}, []string{"LANG=C.UTF-8"}},
		"one of another encoding":      {[]string{"LANG=C.UTF-8", "LC_CTYPE=C"}, []string{"LANG=C.UTF-8"}},
		"one that is not a locale":     {[]string{"LANG=UTF-8"}, []string{"LANG=C.UTF-8"}},
		"one that is installed":        {[]string{"LC_ALL=C.utf8"}, []string{"LC_ALL=C.utf8"}},
		"one with parts of another":    {[]string{"LANG=C.UTF-8", "LC_COLLATE=C"}, []string{"LANG=C.UTF-8", "LC_COLLATE=C"}},
		"whatever Python may be told":  {[]string{"LC_ALL=C", "PYTHONUTF8=1"}, []string{"PYTHONUTF8=1", "LANG=C.UTF-8"}},
		"without what Python would do": {[]string{"LC_CTYPE=C", "PYTHONCOERCECLOCALE=1"}, []string{"PYTHONCOERCECLOCALE=1", "LANG=C.UTF-8"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env, err := pyenv.Find(pyenv.Search{Dir: scratch.Repository(t), Environ: test.environ})
			if err != nil {
				t.Fatal(err)
			}
			env, _ = env.WithUTF8Locale(t.Context())
			if diff := cmp.Diff(test.want, env.Environ()); diff != "" {
				t.Error(diff)
			}
			if err := env.Canary(t.Context(), []byte("\t\n{\"c\": {\"__ansible_unsafe\": \"{{ 6*7 }}\"}}")); err != nil {
				t.Error(err)
			}
		})
	}
}
