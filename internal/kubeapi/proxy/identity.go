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
	// certificateAge outlives every manager: the certificate is made anew at
	// each start and never leaves memory, so nothing would be won by less.
	certificateAge = 10 * 365 * 24 * time.Hour
)

type identity struct {
	certificate tls.Certificate
	ca          []byte
}

// newIdentity makes a certificate that is its own authority. The key is of an elliptic
// curve: each task of a run has a handshake, for which one of RSA takes ten times as long.
func newIdentity() (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("make the key of the API proxy: %w", err)
	}
	now := time.Now()
	serial := big.NewInt(now.UnixNano())
	template := &x509.Certificate{
		SerialNumber: serial,
		// Authorities of two managers on one host are not to be taken for each other.
		Subject:               pkix.Name{CommonName: loopback + "@" + serial.String()},
		IPAddresses:           []net.IP{net.ParseIP(loopback)},
		NotBefore:             now.Add(-time.Hour), // Clocks of one host may have been set.
		NotAfter:              now.Add(certificateAge),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return identity{}, fmt.Errorf("make the certificate of the API proxy: %w", err)
	}
	return identity{
		certificate: tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key},
		ca:          pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
	}, nil
}

func (i identity) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(i.ca)
	return pool
}

func (i identity) wrap(listener net.Listener) net.Listener {
	return tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{i.certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	})
}
