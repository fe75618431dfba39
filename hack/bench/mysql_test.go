package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/mariadb"
)

// A server's roles are compared without ansible-runner alone, and a warm run of a user has a goal.
func TestFiguresOfAServersRoles(t *testing.T) {
	b := &bench{progress: io.Discard, settings: settings{rounds: 2}}
	s := &sides{session: &session{bench: b}, operator: operator{roles: b.mysqlRoles(&mariadb.Server{Host: "127.0.0.1", Port: 3306})}}
	s.ways = map[way]runner{coldWay: stub{coldWay, time.Second, new(int)}, warmWay: stub{warmWay, time.Second, new(int)}}
	if err := s.compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	var walls, goals []string
	for _, row := range s.rows {
		if strings.Contains(row.Name, "plain") {
			t.Errorf("%s: %s", row.Part, row.Name)
		}
		if strings.HasPrefix(row.Name, wallTime) {
			walls = append(walls, row.Part+", "+row.Name)
		}
		if row.Goal != nil && row.Goal.AtMost == mostForUser {
			goals = append(goals, row.Part+", "+row.Name)
		}
	}
	want := []string{
		"A run of MySQLDatabase, wall time, cold run", "A run of MySQLDatabase, wall time, warm run",
		"A run of MySQLUser, wall time, cold run", "A run of MySQLUser, wall time, warm run",
		"A run of MySQLBackup, wall time, cold run", "A run of MySQLBackup, wall time, warm run",
	}
	if diff := cmp.Diff(want, walls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[3:4], goals); diff != "" {
		t.Error(diff)
	}
}
