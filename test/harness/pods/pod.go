package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/prometheus/procfs"
)

// podVariable marks the processes of a pod.
const podVariable = "ENSIGN_TEST_POD"

// maxMessage is the greatest termination message that a kubelet takes.
const maxMessage = 4096

// killedExit is the exit code of a container that was killed.
const killedExit = 137

// termExit is the exit code of a container that ends at TERM.
const termExit = 143

// mainName is the name of the container that becomes a process, where a pod has several.
const mainName = "manager"

// pod is one on the node.
type pod struct {
	node *Node
	seen *corev1.Pod
	// dir has its log and, below files, what is mounted.
	dir     string
	command *exec.Cmd

	killed     atomic.Bool
	ended      chan struct{} // The container's process has.
	deleted    chan struct{}
	deleteOnce sync.Once
	// evicted and oom say why it is killed; the node's mutex guards them.
	evicted string
	oom     bool
}

// live runs the pod from its first to its last status.
func (p *pod) live(ctx context.Context) {
	if p.await(ctx) {
		if err := p.start(ctx); err != nil {
			p.say(ctx, func(s *corev1.PodStatus) {
				s.Phase, s.Reason, s.Message = corev1.PodFailed, "StartError", err.Error()
			})
		} else {
			p.say(ctx, p.runs)
			p.guard(ctx)
			p.say(ctx, p.over)
		}
	}
	select {
	case <-p.deleted:
		if p.command != nil && len(p.seen.Spec.Containers) > 1 {
			p.say(ctx, p.over)
		}
		// Its last words are in its status by now. The API server removes it when no finalizer is left.
		_ = p.node.k8s.CoreV1().Pods(p.seen.Namespace).Delete(ctx, p.seen.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &p.seen.UID},
		})
	case <-ctx.Done():
	}
}

// await waits while the node holds its pods. It returns false if the pod goes before it starts.
func (p *pod) await(ctx context.Context) bool {
	told := ""
	for {
		held := p.node.holds()
		if held != nil && held.Message != told {
			told = held.Message
			p.say(ctx, func(s *corev1.PodStatus) {
				s.ContainerStatuses = []corev1.ContainerStatus{p.container(corev1.ContainerState{Waiting: held})}
			})
		}
		select {
		case <-p.deleted:
			return false
		case <-ctx.Done():
			return false
		default:
		}
		if held == nil {
			return true
		}
		select {
		case <-p.deleted:
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (p *pod) say(ctx context.Context, change func(*corev1.PodStatus)) {
	_ = p.node.update(ctx, p.seen, change) // It ends with ctx alone.
}

// start starts the container's process.
func (p *pod) start(ctx context.Context) error {
	container := p.main()
	paths, err := p.mount(ctx, container)
	if err != nil {
		return err
	}
	words := append(append([]string{}, container.Command...), container.Args...)
	if len(words) == 0 {
		return errors.New("no command: images are not known here")
	}
	program, known := p.node.options.Programs[filepath.Base(words[0])]
	if !known {
		return fmt.Errorf("no program for %s", words[0])
	}
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	for i := range words {
		words[i] = paths.Replace(words[i])
	}
	p.command = exec.Command(program, words[1:]...)
	p.command.Stdout, p.command.Stderr, p.command.Dir = log, log, p.dir
	p.command.Env = []string{podVariable + "=" + string(p.seen.UID), "TMPDIR=" + filepath.Join(p.dir, "tmp"), "HOME=" + p.dir}
	for _, entry := range p.node.options.Env {
		p.command.Env = append(p.command.Env, paths.Replace(entry))
	}
	for _, variable := range container.Env {
		p.command.Env = append(p.command.Env, variable.Name+"="+paths.Replace(variable.Value))
	}
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.command.Start(); err != nil {
		return err
	}
	go func() {
		_ = p.command.Wait() // How it ended is in the process state.
		close(p.ended)
	}()
	if p.killed.Load() { // Before it was there.
		p.killAll()
	}
	return nil
}

// mount makes the files of the container's volumes, and returns what replaces their paths.
func (p *pod) mount(ctx context.Context, container corev1.Container) (*strings.Replacer, error) {
	if err := os.MkdirAll(filepath.Join(p.dir, "tmp"), 0o700); err != nil {
		return nil, err
	}
	message := filepath.Join(p.dir, "message")
	if err := os.WriteFile(message, nil, 0o600); err != nil {
		return nil, err
	}
	var paths []string
	if container.TerminationMessagePath != "" {
		paths = append(paths, container.TerminationMessagePath, message)
	}
	for _, mount := range container.VolumeMounts {
		at := filepath.Join(p.dir, "files", mount.Name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			return nil, err
		}
		for i := range p.seen.Spec.Volumes {
			if volume := p.seen.Spec.Volumes[i]; volume.Name == mount.Name && volume.Projected != nil {
				if err := p.project(ctx, at, volume.Projected); err != nil {
					return nil, err
				}
			}
		}
		paths = append(paths, mount.MountPath+"/", at+"/")
	}
	return strings.NewReplacer(paths...), nil
}

// project writes the tokens of a volume. They are bound to the pod, and valid as long as it is.
func (p *pod) project(ctx context.Context, at string, volume *corev1.ProjectedVolumeSource) error {
	for _, source := range volume.Sources {
		if source.ServiceAccountToken == nil {
			continue
		}
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: source.ServiceAccountToken.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.seen.Name, UID: p.seen.UID},
		}}
		if audience := source.ServiceAccountToken.Audience; audience != "" {
			request.Spec.Audiences = []string{audience}
		}
		account := p.seen.Spec.ServiceAccountName
		if account == "" {
			account = "default"
		}
		request, err := p.node.k8s.CoreV1().ServiceAccounts(p.seen.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("get a token for the pod: %w", err)
		}
		if err := os.WriteFile(filepath.Join(at, source.ServiceAccountToken.Path), []byte(request.Status.Token), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// guard waits for the end of the container, which a deletion brings about.
func (p *pod) guard(ctx context.Context) {
	select {
	case <-p.ended:
	case <-ctx.Done():
	case <-p.deleted:
		_ = p.command.Process.Signal(syscall.SIGTERM)
		grace := time.Duration(ptr.Deref(p.seen.Spec.TerminationGracePeriodSeconds, 30)) * time.Second
		select {
		case <-p.ended:
		case <-ctx.Done():
		case <-time.After(grace):
		}
	}
	p.kill() // What the container's first process has left.
	<-p.ended
}

// kill kills all processes of the pod, now or as soon as it has one.
func (p *pod) kill() {
	if !p.killed.Swap(true) {
		p.killAll()
	}
}

func (p *pod) killAll() {
	mark := podVariable + "=" + string(p.seen.UID)
	for found := true; found; {
		found = false
		all, _ := procfs.AllProcs()
		for _, process := range all {
			environment, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process.PID), "environ"))
			if err != nil || !strings.Contains("\x00"+string(environment)+"\x00", "\x00"+mark+"\x00") {
				continue
			}
			found = syscall.Kill(process.PID, syscall.SIGKILL) == nil || found
		}
	}
}

func (p *pod) container(state corev1.ContainerState) corev1.ContainerStatus {
	return status(p.main(), state)
}

// main is the container that becomes a process: the one named manager, or the first one.
func (p *pod) main() corev1.Container {
	for _, c := range p.seen.Spec.Containers {
		if c.Name == mainName {
			return c
		}
	}
	return p.seen.Spec.Containers[0]
}

// beside returns the states of all containers in the order of the spec: the main one's as told,
// that of the others, which are no processes, as other.
func (p *pod) beside(own, other corev1.ContainerState) (all []corev1.ContainerStatus) {
	main := p.main().Name
	for _, c := range p.seen.Spec.Containers {
		if c.Name == main {
			all = append(all, status(c, own))
		} else {
			all = append(all, status(c, other))
		}
	}
	return all
}

func status(c corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state, Ready: state.Running != nil, Started: new(state.Running != nil)}
}

func (p *pod) runs(s *corev1.PodStatus) {
	now := metav1.Now()
	s.Phase, s.StartTime, s.PodIP, s.HostIP = corev1.PodRunning, &now, "127.0.0.1", "127.0.0.1"
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	s.ContainerStatuses = p.beside(running, running)
}

// over writes how the container ended.
func (p *pod) over(s *corev1.PodStatus) {
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	ended := &corev1.ContainerStateTerminated{ExitCode: killedExit, Reason: "Error", FinishedAt: metav1.Now()}
	if code := p.command.ProcessState.ExitCode(); code >= 0 {
		ended.ExitCode = int32(code)
	}
	message, _ := os.ReadFile(filepath.Join(p.dir, "message"))
	ended.Message = string(message[:min(len(message), maxMessage)])
	s.Phase = corev1.PodFailed
	switch {
	case p.oom:
		ended.Reason = "OOMKilled"
	case p.evicted != "":
		s.Reason, s.Message = "Evicted", p.evicted
		s.Conditions = append(s.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet", Message: p.evicted, LastTransitionTime: metav1.Now(),
		})
	case ended.ExitCode == 0:
		s.Phase, ended.Reason = corev1.PodSucceeded, "Completed"
	}
	other := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	select {
	case <-p.deleted:
		other = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: termExit, Reason: "Error", FinishedAt: metav1.Now()}}
	default:
		if len(p.seen.Spec.Containers) > 1 && p.evicted == "" {
			s.Phase = corev1.PodRunning // The others go on.
		}
	}
	s.ContainerStatuses = p.beside(corev1.ContainerState{Terminated: ended}, other)
}
