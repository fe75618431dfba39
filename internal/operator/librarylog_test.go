package operator

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

func TestLibraryErrorsAreDebugLinesAfterAnOrderlyStop(t *testing.T) {
	var logged []string
	log := newLibraryLog(funcr.New(func(prefix, args string) { logged = append(logged, prefix+" "+args) }, funcr.Options{Verbosity: 1}))
	election := log.WithName("election").WithValues("k", "v")
	election.Error(errors.New("no route"), "before")
	log.stopping.Store(true)
	election.Error(errors.New("leader election lost"), "after")
	election.Info("told")
	want := []string{
		`election "msg"="before" "error"="no route" "k"="v"`,
		`election "level"=1 "msg"="after" "k"="v" "error"="leader election lost"`,
		`election "level"=0 "msg"="told" "k"="v"`,
	}
	if diff := cmp.Diff(want, logged); diff != "" {
		t.Error(diff)
	}
	newLibraryLog(logr.Logger{}).Error(nil, "there may be no log")
}
