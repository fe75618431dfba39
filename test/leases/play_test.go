package leases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/test/harness/script"
)

// journalVariable names the journal of runs, and replicaVariable the manager that
// started one.
const (
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

// play is a run that leaves signs of life and writes to the API until its end.
func play(r *script.Run) (int, error) {
	cr, err := r.Resource()
	if err != nil {
		return 0, err
	}
	namespace, name := (&unstructured.Unstructured{Object: cr}).GetNamespace(), (&unstructured.Unstructured{Object: cr}).GetName()
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
		return 0, err
	}
	s := sign{CR: name, Run: os.Getenv("JOB_ID"), Replica: os.Getenv(replicaVariable), Begun: begun}
	for {
		s.Writes = writes.Load()
		if err := s.writeAt(time.Now()); err != nil {
			return 0, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-term:
			if name != stubborn {
				return 0, errors.New("told to end")
			}
		case <-end:
			return script.Succeed(r)
		}
	}
}

// tick is the unit of times in /proc/PID/stat.
const tick = 10 * time.Millisecond

// startOfThis tells when this process was started, to a tick.
func startOfThis() (time.Time, error) {
	self, err := procfs.Self()
	if err != nil {
		return time.Time{}, err
	}
	stat, err := self.Stat()
	if err != nil {
		return time.Time{}, err
	}
	var sinceBoot unix.Timespec
	err = unix.ClockGettime(unix.CLOCK_BOOTTIME, &sinceBoot)
	return time.Now().Add(time.Duration(stat.Starttime)*tick - time.Duration(sinceBoot.Nano())), err
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
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}
