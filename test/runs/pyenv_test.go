package runs

import (
	"errors"
	"testing"

	"github.com/ensign-operator/ensign/internal/pyenv"
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

func TestCanary(t *testing.T) {
	env := environment(t)
	tests := map[string]struct {
		variables  string
		wantUnsafe bool
	}{
		"the encoding of untrusted text keeps it as it is":                                         {variables: "\t\n{\"c\": {\"__ansible_unsafe\": \"{{ 6*7 }}\"}}"},
		"a plain variable is evaluated, which the canary must notice: else it would prove nothing": {variables: `{"c": "{{ 6*7 }}"}`, wantUnsafe: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := env.Canary(t.Context(), []byte(test.variables))
			if unsafe := errors.Is(err, pyenv.ErrUnsafe); unsafe != test.wantUnsafe || !unsafe && err != nil {
				t.Errorf("got error %v, want unsafe: %v", err, test.wantUnsafe)
			}
		})
	}
}

func TestCanaryThatAnsibleCannotRead(t *testing.T) {
	err := environment(t).Canary(t.Context(), []byte("\t\n{\"c\": "))
	if err == nil || errors.Is(err, pyenv.ErrUnsafe) {
		t.Errorf("got error %v, want one that says the play did not run", err)
	}
}
