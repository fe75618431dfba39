package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/mariadb"
)

// leastWarm is the share of runs that must be warm for this to be a measurement, in percent.
const leastWarm = 95

// way is how roles are run.
type way string

const (
	plainWay way = "plain ansible-runner"
	coldWay  way = "cold runs"
	warmWay  way = "warm runs"
	// tracedWay is that of warm runs whose manager sends traces: of part traces alone.
	tracedWay way = "traced runs"
)

func ways() []way { return []way{plainWay, coldWay, warmWay} }

// warm reports whether the runs of a manager are warm.
func (w way) warm() bool { return w == warmWay || w == tracedWay }

func (w way) one() string { return strings.TrimSuffix(string(w), " runs") }

// operator is a project, one of its files of watches, and the roles of it that are run.
type operator struct {
	title            string // the end of the names of rows, where it matters whose they are
	project, watches string
	roles            []role
	env              []string // of its manager
	collector        string   // where the manager of tracedWay sends spans
}

// side says by what roles are run, and for which CRs.
type side struct {
	*session
	operator operator

	way       way
	namespace string
	// slots is the number of runs at the same time.
	slots int
}

// home is the name of a directory for all that is written; a short one.
func (s side) home() string { return fmt.Sprintf("%.4s%.3s%d", s.way, s.operator.watches, s.slots) }

// runner runs a role for so many CRs.
type runner interface {
	create(ctx context.Context, r role, crs int) error
	change(ctx context.Context, r role, crs int) (batch, error)
	measure(ctx context.Context, r role, crs int) (memory, error)
}

// launch makes the side ready to run roles.
func launch(ctx context.Context, by side) (runner, error) {
	if by.way == plainWay {
		return findPlain(ctx, by)
	}
	return startSite(ctx, by)
}

// sides are the ways to run roles, side by side.
type sides struct {
	side // without its way

	launch func(context.Context, side) (runner, error)
	ways   map[way]runner
	// launches are those of all measured runs that should be warm.
	launches launches
}

// measureWarm compares plain ansible-runner, cold runs and warm ones. Only where all of
// it succeeds are the figures put into a document.
func measureWarm(ctx context.Context, session *session) error {
	s, err := session.sides(ctx, "warm")
	if err != nil {
		return err
	}
	if err := s.run(ctx, anyLogin(), ways(), s.compare, s.crowd, s.share); err != nil || s.settings.table == "" {
		return err
	}
	return report.Report{Machine: s.machine(), Rows: s.rows}.Splice(s.settings.table)
}

// sides boots a cluster for the roles that need no other server.
func (s *session) sides(ctx context.Context, part string) (*sides, error) {
	s.say("%s: booting a cluster; about 10 s", part)
	if err := s.boot(ctx, []schema.GroupKind{benchKind("Nothing"), benchKind("Reference")}, "mysqlclusters"); err != nil {
		return nil, err
	}
	s.say("%s: starting two managers, and the first runs of each role; about 60 s", part)
	of := operator{project: s.project(), watches: "sides.yaml", roles: s.roles()}
	return &sides{side: side{session: s, operator: of}, launch: launch}, nil
}

// anyLogin is one that no server is asked for.
func anyLogin() map[string]string { return map[string]string{"username": "bench", "password": "bench"} }

// measureMySQL compares cold runs and warm ones of the operator that the repository ships, as its
// own watches.yaml has it, on a private MariaDB server.
func measureMySQL(ctx context.Context, session *session) error {
	session.say("mysql: starting MariaDB, booting a cluster; about 10 s")
	server, err := mariadb.Start(ctx, mariadb.Options{})
	if err != nil {
		return err
	}
	session.stops = append(session.stops, server.Stop)
	err = session.boot(ctx, nil, "mysqlclusters", "mysqlusers", "mysqldatabases", "mysqlbackups", "mysqlrestores", "mysqlendpoints")
	if err != nil {
		return err
	}
	dumps := filepath.Join(session.dir, "dumps")
	if err := os.Mkdir(dumps, 0o700); err != nil {
		return fmt.Errorf("make a directory for dumps: %w", err)
	}
	session.say("mysql: starting two managers, and the first runs of each role; about 60 s")
	of := operator{
		title: ", the MySQL operator", project: session.root, watches: "watches.yaml", roles: session.mysqlRoles(server),
		env: []string{"MYSQLBACKUP_DIRECTORY=" + dumps, "PATH=" + filepath.Join(session.root, ".dev", "mariadb", "bin") + ":" + os.Getenv("PATH")},
	}
	s := &sides{side: side{session: session, operator: of}, launch: launch}
	// Accounts get the password of the administrator: there is one Secret less.
	return s.run(ctx, map[string]string{"password": server.Password}, []way{coldWay, warmWay}, s.compare, s.share)
}

// run makes ways ready, and then measures. A manager has a namespace of its own, with a login
// in two Secrets that the roles need, and plain ansible-runner that of cold runs.
func (s *sides) run(ctx context.Context, login map[string]string, ways []way, stages ...func(context.Context) error) (err error) {
	s.ways = map[way]runner{}
	for _, w := range ways {
		on := side{session: s.session, operator: s.operator, way: w, namespace: w.one(), slots: goalSlots}
		objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: on.namespace}}}
		for _, name := range []string{"mysql-admin", "mysql-readers"} {
			objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: on.namespace, Name: name, Labels: mariadb.SecretLabels()}, StringData: login})
		}
		if w == plainWay {
			on.namespace, objects = coldWay.one(), nil
		}
		for _, object := range objects {
			if err := s.client.Create(ctx, object); err != nil {
				return fmt.Errorf("furnish a namespace: %w", err)
			}
		}
		if s.ways[w], err = s.launch(ctx, on); err != nil {
			return err
		}
	}
	for _, stage := range stages {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

// change has so many CRs run at once.
func (s *sides) change(ctx context.Context, w way, by runner, r role, crs int) (batch, error) {
	done, err := by.change(ctx, r, crs)
	if w.warm() {
		s.launches = s.launches.plus(done.launches)
	}
	return done, err
}

// share is the share of the runs which were surely warm from their beginning to their end: each
// module that was not may have been another run's. If it is too small, the other figures do not
// match their names.
func (s *sides) share(context.Context) error {
	l := s.launches
	share := 100 * float64(max(0, l.Warm-l.Refused)) / float64(max(1, l.Warm+l.Cold))
	s.title = "All warm runs"
	s.add(report.Row{
		Name: "warm share" + s.operator.title, Unit: "%", Goal: report.AtLeast(leastWarm),
		Note: fmt.Sprintf("%d runs were warm, %d cold; %d modules of warm ones were started cold, each of which counts as a run; "+
			"runs before the first warm one, those that make the custom resources and those that memory is sampled of are not counted",
			l.Warm, l.Cold, l.Refused),
	}, share)
	if share < leastWarm {
		return fmt.Errorf("only %.0f %% of the runs that should be warm were: %+v", share, l)
	}
	return nil
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
