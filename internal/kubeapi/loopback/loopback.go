// Package loopback makes a certificate for a server at 127.0.0.1, and a kubeconfig for the clients
// of runs that trusts it. There is TLS, although nothing leaves the machine, because clients of Go
// send a kubeconfig's token over TLS alone.
package loopback

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// IP is the address of the servers.
	IP = "127.0.0.1"
	// certificateLifetime is longer than any server runs. A shorter one would not add security:
	// the key never leaves memory, and each start makes a new one.
	certificateLifetime = 10 * 365 * 24 * time.Hour
)

// Certificate is that of one server.
type Certificate struct {
	certificate tls.Certificate
	pem         []byte // without the key
}

// NewCertificate makes a self-signed certificate. It has an ECDSA key, because each task
// of a run has a TLS handshake, and an RSA key makes that ten times as slow.
func NewCertificate() (Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, fmt.Errorf("make the key of a server at 127.0.0.1: %w", err)
	}
	now := time.Now()
	serial := big.NewInt(now.UnixNano())
	template := &x509.Certificate{
		SerialNumber: serial,
		// The certificates of two managers on one host must have different names.
		Subject:               pkix.Name{CommonName: IP + "@" + serial.String()},
		IPAddresses:           []net.IP{net.ParseIP(IP)},
		NotBefore:             now.Add(-time.Hour), // Somebody may set the clock back.
		NotAfter:              now.Add(certificateLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Certificate{}, fmt.Errorf("make the certificate of a server at 127.0.0.1: %w", err)
	}
	return Certificate{
		certificate: tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key},
		pem:         pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
	}, nil
}

// Roots returns the pool with which clients verify the certificate.
func (c Certificate) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.pem)
	return pool
}

// Listener returns a TLS listener on top of inner.
func (c Certificate) Listener(inner net.Listener) net.Listener {
	return tls.NewListener(inner, &tls.Config{
		Certificates: []tls.Certificate{c.certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	})
}

// Kubeconfig returns a kubeconfig for the server at the address, with a token and a default namespace.
func (c Certificate) Kubeconfig(address, token, namespace string) ([]byte, error) {
	const name = "ensign"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + address, CertificateAuthorityData: c.pem}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}
