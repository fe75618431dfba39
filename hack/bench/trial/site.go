package trial

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// heated is far beyond what it takes until runs are warm.
const heated = 2 * time.Minute

// Options say what manager a site has. All but Warm and Alone are required.
type Options struct {
	// Root is the repository's directory; bin/manager and .venv are there.
	Root string
	// Home is for all that the manager writes; a short path.
	Home       string
	Kubeconfig string
	Client     client.WithWatch
	Namespace  string
	// Slots is how many runs are live at once.
	Slots int
	Warm  bool
	// Alone has it watch the kind of the reference role only, which has all slots then:
	// some are kept free for each kind that has no live run.
	Alone bool
}

// Site is a manager that looks after the CRs of a namespace.
type Site struct {
	*harness.Manager

	options Options
}

// Start starts a manager, which then has to be stopped, and waits until it watches, and
// until the runs of a warm one are.
func Start(ctx context.Context, o Options) (*Site, error) {
	least, reference, mysql := Contents(o.Root)
	file, kinds := "watches.yaml", []string{least.Kind.Kind, reference.Kind.Kind, mysql.Kind.Kind}
	if o.Alone {
		file, kinds, least = "alone.yaml", []string{reference.Kind.Kind}, reference
	}
	slots := strconv.Itoa(o.Slots)
	m, err := harness.Start(harness.Options{
		Binary: filepath.Join(o.Root, "bin", "manager"), Project: filepath.Join(o.Root, "hack", "bench", "trial", "project"),
		Kubeconfig: o.Kubeconfig, Home: o.Home, Namespace: o.Namespace,
		Args: []string{
			"--warm=" + strconv.FormatBool(o.Warm), "--max-concurrent-runs=" + slots, "--max-concurrent-reconciles=" + slots,
			"--watches-file=" + file, "--leader-election-namespace=" + o.Namespace, "--ansible-roles-path=" + filepath.Join(o.Root, "roles"),
		},
		Env: []string{"ANSIBLE_GATHERING=explicit"}, // As config/manager has it.
	})
	if err != nil {
		return nil, err
	}
	s := &Site{Manager: m, options: o}
	if err = m.Ready(ctx, kinds...); err == nil && o.Warm {
		err = s.heat(ctx, least)
	}
	if err != nil {
		return nil, errors.Join(err, m.Kill())
	}
	return s, nil
}

// heat has a CR run until such a run is warm from its beginning to its end.
func (s *Site) heat(ctx context.Context, c Content) error {
	ctx, cancel := context.WithTimeout(ctx, heated)
	defer cancel()
	if err := s.Create(ctx, c, c.Names(1)); err != nil {
		return err
	}
	for {
		batch, err := s.Change(ctx, c, c.Names(1))
		if err != nil {
			return fmt.Errorf("wait for a warm run: %w", err)
		}
		if batch.Launches == (Launches{Warm: 1}) {
			return nil
		}
	}
}

// Launches counts how runs were made.
type Launches struct {
	// Warm are those whose ansible-runner and ansible-playbook were forked.
	Warm, Cold int
	// Refused are modules of warm runs that were started cold.
	Refused int
}

// Share is that of the runs which were surely warm from their beginning to their end:
// each module that was not may have been another run's.
func (l Launches) Share() float64 {
	if all := l.Warm + l.Cold; all > 0 {
		return float64(max(0, l.Warm-l.Refused)) / float64(all)
	}
	return 0
}

// Plus adds launches.
func (l Launches) Plus(m Launches) Launches {
	return Launches{l.Warm + m.Warm, l.Cold + m.Cold, l.Refused + m.Refused}
}

// launches reads metrics. Negative counts are those of before.
func launches(metrics string, sign int) Launches {
	sum := func(expression string) int {
		total := 0
		for _, match := range regexp.MustCompile(`(?m)^ansible_operator_`+expression+` (\d+)$`).FindAllStringSubmatch(metrics, -1) {
			n, _ := strconv.Atoi(match[1]) // They are digits.
			total += n
		}
		return sign * total
	}
	return Launches{
		Warm: sum(`runs_total\{.*mode="warm"\}`), Cold: sum(`runs_total\{.*mode="cold"\}`),
		Refused: sum(`warm_fallbacks_total\{program="python",.*\}`),
	}
}

// Memory is what a manager's processes need, in MiB of proportional set size.
type Memory struct {
	// Servers is what those for warm runs need when no run is live, and Idle all
	// processes.
	Servers, Idle float64
	// Peak is the most of all processes while runs were live.
	Peak float64
}

// Measure takes the memory before and while the CRs run. What samples cost is part of
// the batch.
func (s *Site) Measure(ctx context.Context, c Content, names []string) (Memory, error) {
	all := func() float64 { return memory(s.PID(), "") }
	m := Memory{Idle: all(), Servers: memory(s.PID(), "/serve.py ")}
	var err error
	m.Peak, err = peak(all, func() error {
		_, err := s.Change(ctx, c, names)
		return err
	})
	return m, err
}
