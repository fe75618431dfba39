package pyenv

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithUTF8Locale(t *testing.T) {
	const takes, refuses = "exit 0", "exit 1"
	tests := map[string]struct {
		python       string
		environ      []string
		want         []string
		wantReplaced []string
	}{
		"where nothing is said, Python is not asked": {
			python: takes, environ: []string{"PATH=/bin"}, want: []string{"PATH=/bin", "LANG=C.UTF-8"},
		},
		"an empty variable says nothing": {
			python: takes, environ: []string{"LC_ALL=", "LANG="}, want: []string{"LANG=C.UTF-8"},
		},
		"a choice that does stays as it is": {
			python: takes, environ: []string{"LANG=de_DE.UTF-8", "LC_COLLATE=C", "LC_ALL="}, want: []string{"LANG=de_DE.UTF-8", "LC_COLLATE=C", "LC_ALL="},
		},
		"one that does not goes as a whole": {
			python: refuses, environ: []string{"LANG=C.UTF-8", "LC_ALL=C", "LANGUAGE=de", "LC_TIME=de_DE.UTF-8", "A=1"},
			want: []string{"A=1", "LANG=C.UTF-8"}, wantReplaced: []string{"LANG", "LC_ALL", "LANGUAGE", "LC_TIME"},
		},
		"other names begin alike": {
			python: refuses, environ: []string{"LANGUAGES=a", "LC=b"}, want: []string{"LANGUAGES=a", "LC=b", "LANG=C.UTF-8"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fakeEnv(t, filepath.Join(dir, ".venv"), test.python, "")
			env, err := Find(Search{Dir: dir, Environ: test.environ})
			if err != nil {
				t.Fatal(err)
			}
			got, replaced := env.WithUTF8Locale(t.Context())
			if diff := cmp.Diff(test.want, got.Environ()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.wantReplaced, replaced); diff != "" {
				t.Error(diff)
			}
		})
	}
}
