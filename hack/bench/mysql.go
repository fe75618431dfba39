package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/mariadb"
)

// mostForUser is the goal of a warm run of a MySQLUser, in s.
const mostForUser = 1.5

// measureMySQL compares cold runs and warm ones of the operator that the repository ships, as its
// own watches.yaml has it, on a private MariaDB server.
func measureMySQL(ctx context.Context, session *session) error {
	session.say("mysql: starting MariaDB, booting a cluster; about 10 s")
	server, err := mariadb.Start(ctx, mariadb.Options{})
	if err != nil {
		return err
	}
	session.stops = append(session.stops, server.Stop)
	definitions, err := session.shipped("mysqlclusters", "mysqlusers", "mysqldatabases", "mysqlbackups", "mysqlrestores", "mysqlendpoints")
	if err != nil {
		return err
	}
	if err := session.boot(ctx, definitions...); err != nil {
		return err
	}
	dumps := filepath.Join(session.dir, "dumps")
	if err := os.Mkdir(dumps, 0o700); err != nil {
		return fmt.Errorf("make a directory for dumps: %w", err)
	}
	s := &sides{session: session, ways: map[way]runner{}, operator: operator{
		title: ", the MySQL operator", project: session.root, watches: "watches.yaml", roles: session.mysqlRoles(server),
		env: []string{"MYSQLBACKUP_DIRECTORY=" + dumps, "PATH=" + filepath.Join(session.root, ".dev", "mariadb", "bin") + ":" + os.Getenv("PATH")},
	}}
	s.open = s.launch
	session.say("mysql: starting two managers, and the first runs of each role; about 60 s")
	for _, w := range []way{coldWay, warmWay} {
		// Accounts get the password of the administrator: there is one Secret less.
		if err := s.prepare(ctx, w.one(), map[string]string{"password": server.Password}); err != nil {
			return err
		}
		if err := s.begin(ctx, w, w.one()); err != nil {
			return err
		}
	}
	if err := s.compare(ctx); err != nil {
		return err
	}
	return s.share(ctx)
}

// mysqlRoles are those that work on a server, after that of their MySQLCluster, which is a server
// that runs elsewhere. Its own runs would start theirs.
func (b *bench) mysqlRoles(server *mariadb.Server) []role {
	one := func(kind string, mostWall float64, spec map[string]any) role {
		return role{
			title: kind, name: strings.ToLower(kind), kind: schema.GroupKind{Group: mysqlGroup, Kind: kind},
			spec: spec, rounds: max(1, b.settings.rounds/2), mostWall: mostWall,
		}
	}
	cluster := one("MySQLCluster", 0, map[string]any{
		"mysqlAdminSecret": "mysql-admin", "endpoint": map[string]any{"host": server.Host, "port": int64(server.Port)},
	})
	cluster.rounds = 0
	to := map[string]any{"name": cluster.names(1)[0]}
	database := one("MySQLDatabase", 0, map[string]any{"cluster": to})
	privileges := map[string]any{"database": database.names(1)[0], "privileges": []any{"SELECT", "INSERT"}}
	user := one("MySQLUser", mostForUser, map[string]any{"cluster": to, "passwordSecret": "mysql-admin", "privileges": []any{privileges}})
	backup := one("MySQLBackup", 0, map[string]any{"cluster": to, "storage": map[string]any{"directory": "bench"}})
	return []role{cluster, database, user, backup}
}
