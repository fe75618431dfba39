package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadSettings(t *testing.T) {
	tests := map[string]struct {
		env     map[string]string
		want    settings
		wantErr bool
	}{
		"nothing set boots a cluster and takes it down": {},
		"KEEP=0 is as good as nothing":                  {env: map[string]string{"KEEP": "0"}},
		"KEEP=1 keeps":                                  {env: map[string]string{"KEEP": "1"}, want: settings{keep: true}},
		"another KEEP is a slip":                        {env: map[string]string{"KEEP": "yes"}, wantErr: true},
		"a KUBECONFIG alone is left alone":              {env: map[string]string{"KUBECONFIG": "/k"}},
		"the current cluster is KUBECONFIG's": {
			env:  map[string]string{"DEMO_CLUSTER": "current", "KUBECONFIG": "/k"},
			want: settings{kubeconfig: "/k"},
		},
		"the current cluster must be named":  {env: map[string]string{"DEMO_CLUSTER": "current"}, wantErr: true},
		"another DEMO_CLUSTER is a slip too": {env: map[string]string{"DEMO_CLUSTER": "mine"}, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := readSettings(func(name string) string { return test.env[name] })
			if (err != nil) != test.wantErr {
				t.Fatalf("got error %v, want one: %t", err, test.wantErr)
			}
			if test.wantErr {
				return
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(settings{})); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}
