package controlplane

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ensign-operator/ensign/test/controlplane/process"
)

// findBin returns the absolute directory of the programs, which has everything that
// a control plane needs.
func findBin(dir string) (string, error) {
	bin, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the programs: %w", err)
	}
	for above := bin; dir == ""; above = filepath.Dir(above) {
		bin = filepath.Join(above, "bin", "controlplane")
		if _, err := os.Stat(bin); err == nil {
			break
		}
		if above == filepath.Dir(above) {
			return "", errors.New(`no bin/controlplane here or above; run "make controlplane"`)
		}
	}
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "stages.yaml"} {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			return "", fmt.Errorf(`%q is not a built control plane (run "make controlplane"): %w`, bin, err)
		}
	}
	return bin, nil
}

// server is the command line of one. Paths are relative to the data directory, in
// which all of them run, because the path of a socket must be short.
type server []string

func (c *Cluster) start(servers ...server) error {
	for _, s := range servers {
		_, err := c.servers.Start(process.Command{Path: filepath.Join(c.bin, s[0]), Args: s[1:], Dir: c.DataDir, Log: c.file(filepath.Join(logDir, s[0]+".log"))})
		if err != nil {
			return err
		}
	}
	return nil
}

// etcd listens on sockets only: other users of the machine cannot reach it, and
// it needs no port. The addresses of host:port form are never contacted.
func (c *Cluster) etcd(o Options) server {
	return server{
		"etcd",
		"--name=ensign",
		"--data-dir=etcd",
		"--listen-client-urls=unix://" + etcdSocket,
		"--advertise-client-urls=http://localhost:2379",
		"--listen-peer-urls=unix://" + peerSocket,
		"--initial-advertise-peer-urls=http://localhost:2380",
		"--initial-cluster=ensign=http://localhost:2380",
		"--unsafe-no-fsync=" + strconv.FormatBool(o.DataDir == ""),
		"--log-level=warn",
	}
}

func (c *Cluster) apiServer(o Options) (server, error) {
	address, err := url.Parse(c.Config.Host)
	if err != nil {
		return nil, err
	}
	s := server{
		"kube-apiserver",
		"--etcd-servers=unix://" + etcdSocket,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + address.Port(),
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + certFile,
		"--tls-private-key-file=" + keyFile,
		"--token-auth-file=" + tokenFile,
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + keyFile,
		"--service-account-signing-key-file=" + keyFile,
	}
	if !o.AdmitServiceAccounts {
		s = append(s, "--disable-admission-plugins=ServiceAccount")
	}
	if o.CheckOwnerReferences {
		s = append(s, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
	}
	if o.AuditLog == "" {
		return s, nil
	}
	log, err := filepath.Abs(o.AuditLog)
	// One file, written before a request is answered.
	return append(s, "--audit-policy-file="+auditFile, "--audit-log-path="+log, "--audit-log-mode=blocking", "--audit-log-maxsize=100000"), err
}

// controllers are the servers that need the API server.
func (c *Cluster) controllers(o Options) []server {
	nodes := []string{"--manage-all-nodes=true"}
	if o.LeaveNodes {
		nodes = []string{"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=" + fakeNode}
	}
	return []server{{
		"kube-controller-manager",
		"--kubeconfig=" + c.Kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file=" + keyFile,
		"--root-ca-file=" + certFile,
		// A machine that was busy or asleep must not cost the pods their readiness:
		// kwok makes the node Ready again, but not the pods.
		"--node-monitor-grace-period=1h",
	}, {
		"kube-scheduler",
		"--kubeconfig=" + c.Kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
	}, append(server{
		"kwok",
		"--kubeconfig=" + c.Kubeconfig,
		// Without leases the node would count as dead after a while.
		"--node-lease-duration-seconds=40",
		"--config=" + filepath.Join(c.bin, stagesFile),
	}, nodes...)}
}
