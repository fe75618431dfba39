//go:build node

package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// securesEtcd has a cluster that only those reach who have a certificate, which the operator heals like any other.
func securesEtcd(ctx context.Context) {
	const name = "secured"
	authority := newAuthority()
	for secret, prefix := range map[string]string{"etcd-peer": "peer", "etcd-server": "server", "etcd-operator": "etcd-client"} {
		certificate, key := authority.sign("*."+name+"."+namespace+".svc", name+"-client."+namespace+".svc", "localhost")
		object := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret},
			Data:       map[string][]byte{prefix + ".crt": certificate, prefix + ".key": key, prefix + "-ca.crt": authority.text},
		}
		Expect(api.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(api.Delete(ctx, object)).To(Succeed()) })
	}
	create(ctx, etcdCluster(name, map[string]any{"size": int64(3), "TLS": map[string]any{"static": map[string]any{
		"member": map[string]any{"peerSecret": "etcd-peer", "serverSecret": "etcd-server"}, "operatorSecret": "etcd-operator",
	}}}))
	DeferCleanup(func(ctx context.Context) { kubectl(ctx, "delete", "etcdcluster", name, "--timeout=2m") })
	etcdIsReady(ctx, name)
	inside := []string{"exec", name + "-0", "--", "etcdctl", "--endpoints=https://" + name + "-client." + namespace + ".svc:2379", "--cacert=/etc/etcd/server/server-ca.crt"}
	certified := slices.Concat(inside, []string{"--cert=/etc/etcd/server/server.crt", "--key=/etc/etcd/server/server.key"})
	Expect(kubectl(ctx, append(certified, "put", "foo", "bar")...)).To(ContainSubstring("OK"))
	Expect(command(ctx, "kubectl", append(inside, "get", "foo", "--command-timeout=3s")...).Run()).To(HaveOccurred(), "without a certificate")

	By("a member that is replaced")
	loseVolumes(ctx, name+"-1")
	Eventually(ctx, func() string { return etcdField(ctx, name, "status", "phase") }).Should(Equal("Recovering"))
	etcdIsReady(ctx, name)
	Expect(kubectl(ctx, append(certified, "get", "foo", "--print-value-only")...)).To(ContainSubstring("bar"))
	By("the operator's log, which has no key")
	Expect(kubectl(ctx, "logs", "--namespace="+etcdSpace, "deployment/etcd-operator-manager", "--tail=-1")).NotTo(ContainSubstring("PRIVATE KEY"))
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	text        []byte
}

func newAuthority() *authority {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "etcd authority"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	text, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	certificate, err := x509.ParseCertificate(text)
	Expect(err).NotTo(HaveOccurred())
	return &authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text})}
}

// sign returns a certificate for servers and clients, and its key.
func (a *authority) sign(names ...string) (certificate, key []byte) {
	GinkgoHelper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	text, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "etcd"}, DNSNames: names, NotAfter: time.Now().Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, private.Public(), a.key)
	Expect(err).NotTo(HaveOccurred())
	secret, err := x509.MarshalECPrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
}
