package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
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

func (d discovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return nil, []*metav1.APIResourceList{{GroupVersion: "g/v2", APIResources: []metav1.APIResource{{Name: "ks", Kind: "K"}}}}, errors.New("another group can't be told")
}

func TestWhatTheLogSaysOfAKindThatIsAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		want    string
		wantNot string
	}{
		"its group has other kinds":  {nil, "its CRD may be missing", "error"},
		"its other version is named": {nil, `WARNING: the watched kind is not served`, "error"},
		"as what is served instead":  {nil, `"servedInstead"=["g/v2, Kind=K"]`, "error"},
		"nor is its group served":    {apierrors.NewNotFound(schema.GroupResource{}, "x"), "its CRD may be missing", "error"},
		"nobody could be asked":      {errors.New("connection refused"), "connection refused", "CRD"},
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

// missing tells that nothing is served, until the time is over.
type missing struct{ err error }

func (m missing) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{}, m.err
}

func (m missing) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return nil, nil, m.err
}

func TestAMissingKindIsToldOfOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var told []time.Time
		s := &Supervisor{
			GVK: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}, Discovery: missing{},
			Logger: funcr.New(func(string, string) { told = append(told, time.Now()) }, funcr.Options{}),
		}
		s.awaitKind(ctx)
		if len(told) < 45 || len(told) > 60 {
			t.Errorf("told %d times within an hour", len(told))
		}
		for i := 1; i < len(told); i++ {
			if pause := told[i].Sub(told[i-1]); pause < time.Minute || pause > 2*time.Minute {
				t.Errorf("a pause of %s", pause)
			}
		}
	})
}

func TestReadiness(t *testing.T) {
	gone := errors.New("forbidden")
	for name, test := range map[string]struct {
		discovery Discovery
		before    func(*Supervisor)
		want      error
	}{
		"a standby replica is ready":                         {nil, func(*Supervisor) {}, nil},
		"a watch whose kind is missing has nothing to do":    {missing{}, func(s *Supervisor) { s.setUnready(gone) }, nil},
		"so has one whose group is not served":               {missing{apierrors.NewNotFound(schema.GroupResource{}, "x")}, func(s *Supervisor) { s.setUnready(gone) }, nil},
		"an API server that does not answer changes nothing": {missing{errors.New("refused")}, func(s *Supervisor) { s.setUnready(gone) }, gone},
		"what it lacks is what the check says":               {nil, func(s *Supervisor) { s.setUnready(gone) }, gone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				s := &Supervisor{GVK: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}, Discovery: test.discovery, Logger: logr.Discard()}
				test.before(s)
				if test.discovery != nil {
					s.awaitKind(ctx)
				}
				if err := s.Check(nil); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
			})
		})
	}
}

// A run in a Job goes on when the manager stops, and not when its kind has gone.
func TestWhyTheControllerOfAKindStops(t *testing.T) {
	for want, discovery := range map[error]Discovery{errGone: missing{}, errStopped: missing{errors.New("connection refused")}} {
		synctest.Test(t, func(t *testing.T) {
			manager, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Hour, func() { stop(errStopped) })
			s := &Supervisor{GVK: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}, Discovery: discovery, Logger: logr.Discard()}
			ctx, cancel := s.whileServed(manager)
			defer cancel(nil)
			<-ctx.Done()
			if got := context.Cause(ctx); !errors.Is(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			stop(nil)
		})
	}
}
