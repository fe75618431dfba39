package leases

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// playVariable makes the test binary play ansible-runner.
	playVariable = "LEASES_PLAY"
	// journalVariable names the journal of runs, and replicaVariable the manager
	// that started one.
	journalVariable = "LEASES_JOURNAL"
	replicaVariable = "LEASES_REPLICA"
)

// The custom resources, by what their runs do.
const (
	stubborn = "stubborn" // goes on for ever, whatever TERM says
	gentle   = "gentle"   // goes on until TERM
	short    = "short"    // succeeds at once
)

// sign is a sign of life of a run: one line of the journal.
type sign struct {
	At      time.Time `json:"at"`
	CR      string    `json:"cr"`
	Run     string    `json:"run"`
	Replica string    `json:"replica"`
	// Begun is when the run's process was started.
	Begun time.Time `json:"begun"`
	// Writes is how many writes to the API have been accepted.
	Writes int64 `json:"writes"`
}

// play is a run of ansible-runner, as far as a manager can tell: `run DIR …`.
func play(args []string) error {
	name, namespace, err := subject(filepath.Join(args[1], "env", "extravars"))
	if err != nil {
		return err
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var writes atomic.Int64
	go writeOn(ctx, namespace, name, &writes)
	end := time.After(24 * time.Hour)
	if name == short {
		end = time.After(50 * time.Millisecond)
	}
	begun, err := startOfThis()
	if err != nil {
		return err
	}
	s := sign{CR: name, Run: os.Getenv("JOB_ID"), Replica: os.Getenv(replicaVariable), Begun: begun}
	for {
		s.Writes = writes.Load()
		if err := s.write(); err != nil {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-term:
			if name != stubborn {
				return fmt.Errorf("told to end")
			}
		case <-end:
			fmt.Printf(`{"uuid": "u", "counter": 1, "event": "playbook_on_stats", "job_id": %s, "created": "2026-01-02T03:04:05.000006+00:00", "event_data": {"ok": {"localhost": 1}, "changed": {}, "dark": {}, "failures": {}, "ignored": {}, "rescued": {}, "skipped": {}, "processed": {"localhost": 1}}}`+"\n", s.Run)
			return nil
		}
	}
}

// startOfThis tells when this process was started, to 10 ms, the unit of
// /proc/PID/stat. See proc_pid_stat(5), field 22.
func startOfThis() (time.Time, error) {
	const fieldsBeforeState, starttime, tick = 2, 22, 10 * time.Millisecond
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return time.Time{}, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	ticks, err := strconv.ParseInt(fields[starttime-fieldsBeforeState-1], 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	var sinceBoot unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &sinceBoot); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(time.Duration(ticks)*tick - time.Duration(sinceBoot.Nano())), nil
}

// subject reads the custom resource's name from the variables of a run.
func subject(path string) (name, namespace string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	type text struct {
		Text string `json:"__ansible_unsafe"`
	}
	var variables struct {
		Meta struct {
			Name      text `json:"name"`
			Namespace text `json:"namespace"`
		} `json:"ansible_operator_meta"`
	}
	err = json.Unmarshal(data, &variables)
	return variables.Meta.Name.Text, variables.Meta.Namespace.Text, err
}

// writeOn writes to the run's own ConfigMap through the manager's proxy. It tries
// on whatever the answer is: what a role does when it may not is its own affair.
func writeOn(ctx context.Context, namespace, name string, accepted *atomic.Int64) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	config.Timeout = 2 * time.Second
	config.ContentType = "application/json" // The proxy reads what it gives an owner.
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(namespace)
	_, _ = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}) // It may be there.
	for i := 0; ctx.Err() == nil; i++ {
		patch := fmt.Appendf(nil, `{"data": {"run": %q, "write": "%d"}}`, os.Getenv("JOB_ID"), i)
		if _, err := maps.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
			accepted.Add(1)
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (s sign) write() error { return s.writeAt(time.Now()) }

func (s sign) writeAt(at time.Time) error {
	s.At = at
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(os.Getenv(journalVariable), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return file.Close()
}
