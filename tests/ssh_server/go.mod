// The ssh server that the tests of git as a source fetch from and push to.
module streamfleet/ssh-server

go 1.26.0

require golang.org/x/crypto v0.47.0

require golang.org/x/sys v0.40.0 // indirect
