package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/mariadb"
)

const (
	mysqlGroup = "myapp.myorg.tld"
	// referenceRole is the name of the one whose goals are those of runs in general.
	referenceRole = "reference"
)

// role is one that is run in each way, with the CRs that it is for.
type role struct {
	title string
	kind  schema.GroupKind
	name  string
	path  string // the directory of roles that has it
	spec  map[string]any
	// free says that the spec may hold anything, so that any change of it is one.
	free bool
	// rounds is how often it is run in each way; 0 is a role without which others do not run.
	rounds int
	// Goals of a warm run: of plain ansible-runner's wall time and CPU, and wall time in s. 0 is none.
	mostOfPlain, mostWall float64
}

// roles are one that does nothing, the reference role and that of MySQLCluster.
func (b *bench) roles() []role {
	own, n := filepath.Join(b.project(), "roles"), b.settings.rounds
	return []role{
		{"a role that does nothing", benchKind("Nothing"), "nothing", own, map[string]any{}, true, n, 0, 0.12},
		{"the reference role", benchKind("Reference"), referenceRole, own, map[string]any{"greeting": "hello"}, true, n, 0.1, 0},
		{
			"MySQLCluster", schema.GroupKind{Group: mysqlGroup, Kind: "MySQLCluster"}, "mysqlcluster", filepath.Join(b.root, "roles"),
			map[string]any{"mysqlAdminSecret": "mysql-admin", "mysqlReadersSecret": "mysql-readers"}, false, max(1, n/2), 0.2, 0,
		},
	}
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
	user := one("MySQLUser", 1.5, map[string]any{"cluster": to, "passwordSecret": "mysql-admin", "privileges": []any{privileges}})
	backup := one("MySQLBackup", 0, map[string]any{"cluster": to, "storage": map[string]any{"directory": "bench"}})
	return []role{cluster, database, user, backup}
}

// change is a merge patch that has a CR run again, with nothing to do in the cluster.
func (r role) change(at time.Time) []byte {
	stamp := at.UTC().Format(time.RFC3339Nano)
	if r.free {
		return fmt.Appendf(nil, `{"spec":{"changed":%q}}`, stamp)
	}
	return fmt.Appendf(nil, `{"metadata":{"annotations":{"ansible.sdk.operatorframework.io/reconcile-requested-at":%q}}}`, stamp)
}

// names are the names of so many CRs. The objects of a CR have its name, so that no two roles have
// the same.
func (r role) names(crs int) []string { return names(r.name, crs) }

func listOf(kind schema.GroupKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.WithVersion("v1"))
	return list
}
