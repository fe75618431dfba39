package proxy

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
)

const (
	loopback = "127.0.0.1"
	// certificateLifetime is longer than any manager runs. A shorter one would not add security:
	// the key never leaves memory, and each start makes a new one.
	certificateLifetime = 10 * 365 * 24 * time.Hour
)

// serverCertificate is the proxy's certificate.
type serverCertificate struct {
	certificate tls.Certificate
	pem         []byte // without the key
}

// newServerCertificate makes a self-signed certificate. It has an ECDSA key, because each task
// of a run has a TLS handshake, and an RSA key makes that ten times as slow.
func newServerCertificate() (serverCertificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return serverCertificate{}, fmt.Errorf("make the key of the API proxy: %w", err)
	}
	now := time.Now()
	serial := big.NewInt(now.UnixNano())
	template := &x509.Certificate{
		SerialNumber: serial,
		// The certificates of two managers on one host must have different names.
		Subject:               pkix.Name{CommonName: loopback + "@" + serial.String()},
		IPAddresses:           []net.IP{net.ParseIP(loopback)},
		NotBefore:             now.Add(-time.Hour), // Somebody may set the clock back.
		NotAfter:              now.Add(certificateLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return serverCertificate{}, fmt.Errorf("make the certificate of the API proxy: %w", err)
	}
	return serverCertificate{
		certificate: tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key},
		pem:         pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
	}, nil
}

// roots returns the pool with which clients verify the certificate.
func (c serverCertificate) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.pem)
	return pool
}

// listener returns a TLS listener on top of inner.
func (c serverCertificate) listener(inner net.Listener) net.Listener {
	return tls.NewListener(inner, &tls.Config{
		Certificates: []tls.Certificate{c.certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	})
}
