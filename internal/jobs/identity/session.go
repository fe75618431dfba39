package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Session names the pod of a Job that executes a run.
type Session struct {
	JobUID, PodUID types.UID
	RunID          string
}

// Token returns the bearer token of the session. It is the same at each call and by each manager.
func (i *Identity) Token(s Session) string {
	payload, _ := json.Marshal(s) // Three strings.
	encoded := base64.RawURLEncoding.EncodeToString(payload)
	return encoded + "." + base64.RawURLEncoding.EncodeToString(i.sign(encoded))
}

// Session returns the session of a token; false for an invalid one. The session may have ended.
func (i *Identity) Session(token string) (Session, bool) {
	encoded, signature, _ := strings.Cut(token, ".")
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(given, i.sign(encoded)) {
		return Session{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return Session{}, false
	}
	var s Session
	return s, json.Unmarshal(payload, &s) == nil
}

func (i *Identity) sign(encoded string) []byte {
	mac := hmac.New(sha256.New, i.sessionKey)
	mac.Write([]byte(encoded))
	return mac.Sum(nil)
}
