package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discovery gives the same answer each time, and ends the test's look-out.
type discovery struct {
	err    error
	looked context.CancelFunc
}

func (d discovery) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	d.looked()
	return &metav1.APIResourceList{}, d.err
}

func TestWhatTheLogSaysOfAKindThatIsAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		want    string
		wantNot string
	}{
		"its group has other kinds": {nil, "its CRD may be missing", "error"},
		"nor is its group served":   {apierrors.NewNotFound(schema.GroupResource{}, "x"), "its CRD may be missing", "error"},
		"nobody could be asked":     {errors.New("connection refused"), "connection refused", "CRD"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			ctx, cancel := context.WithCancel(t.Context())
			s := &Supervisor{
				GVK:       schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"},
				Discovery: discovery{test.err, cancel},
				Logger:    funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
			}
			if _, served := s.awaitKind(ctx); served {
				t.Error("it is not served")
			}
			if len(lines) != 1 || !strings.Contains(lines[0], test.want) || strings.Contains(lines[0], test.wantNot) {
				t.Errorf("want one line with %q and without %q, got %q", test.want, test.wantNot, lines)
			}
		})
	}
}
