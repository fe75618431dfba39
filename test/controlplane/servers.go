package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ensign-operator/ensign/test/controlplane/process"
)

// findBin returns the absolute directory of the programs.
func findBin(named string) (string, error) {
	if named != "" {
		dir, err := filepath.Abs(named)
		if err != nil {
			return "", fmt.Errorf("find %q: %w", named, err)
		}
		return dir, complete(dir)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		bin := filepath.Join(dir, "bin", "controlplane")
		if _, err := os.Stat(bin); err == nil {
			return bin, complete(bin)
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New(`no bin/controlplane here or above; run "make controlplane"`)
		}
	}
}

// complete holds for a directory with everything that a control plane needs.
func complete(dir string) error {
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "stages.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return fmt.Errorf(`%q is not a built control plane (run "make controlplane"): %w`, dir, err)
		}
	}
	return nil
}

// commands are the servers' command lines. Paths are relative to the data
// directory, in which all of them run, because the path of a socket must be
// short.
type commands struct {
	bin     string
	state   *state
	options Options
}

func (c commands) command(program string, args ...string) process.Command {
	return process.Command{
		Path: filepath.Join(c.bin, program),
		Args: args,
		Dir:  c.state.dir,
		Log:  filepath.Join(c.state.dir, logDir, program+".log"),
	}
}

// etcd listens on sockets only: other users of the machine cannot reach it, and
// it needs no port. The addresses of host:port form are never contacted.
func (c commands) etcd() process.Command {
	return c.command("etcd",
		"--name=ensign",
		"--data-dir=etcd",
		"--listen-client-urls=unix://"+etcdSocket,
		"--advertise-client-urls=http://localhost:2379",
		"--listen-peer-urls=unix://"+peerSocket,
		"--initial-advertise-peer-urls=http://localhost:2380",
		"--initial-cluster=ensign=http://localhost:2380",
		"--unsafe-no-fsync="+strconv.FormatBool(!c.state.keep),
		"--log-level=warn",
	)
}

func (c commands) apiServer() process.Command {
	admission := "--disable-admission-plugins=ServiceAccount"
	if c.options.AdmitServiceAccounts {
		admission = "--enable-admission-plugins=ServiceAccount"
	}
	return c.command("kube-apiserver", append(c.audit(),
		admission,
		"--etcd-servers=unix://"+etcdSocket,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(c.state.port.Number),
		"--permit-port-sharing=true", // The reservation of the port shares it.
		"--endpoint-reconciler-type=none",
		"--tls-cert-file="+certFile,
		"--tls-private-key-file="+keyFile,
		"--token-auth-file="+tokenFile,
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+accountKeyFile,
		"--service-account-signing-key-file="+accountKeyFile,
	)...)
}

// audit returns the arguments of the audit log: one file, written before a request
// is answered.
func (c commands) audit() []string {
	if c.state.audit == "" {
		return nil
	}
	return []string{"--audit-policy-file=" + auditFile, "--audit-log-path=" + c.state.audit, "--audit-log-mode=blocking", "--audit-log-maxsize=100000"}
}

func (c commands) controllerManager() process.Command {
	return c.command("kube-controller-manager",
		"--kubeconfig="+c.state.kubeconfig.path,
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file="+accountKeyFile,
		"--root-ca-file="+certFile,
		// A machine that was busy or asleep must not cost the pods their readiness:
		// kwok makes the node Ready again, but not the pods.
		"--node-monitor-grace-period=1h",
	)
}

func (c commands) scheduler() process.Command {
	return c.command("kube-scheduler",
		"--kubeconfig="+c.state.kubeconfig.path,
		"--leader-elect=false",
		"--secure-port=0",
	)
}

func (c commands) kwok() process.Command {
	return c.command("kwok",
		"--kubeconfig="+c.state.kubeconfig.path,
		"--manage-all-nodes=true",
		// Without leases the node would count as dead after a while.
		"--node-lease-duration-seconds=40",
		"--config="+filepath.Join(c.bin, "stages.yaml"),
	)
}
