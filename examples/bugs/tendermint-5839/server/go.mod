module rose/bugs/tendermint-5839/server

go 1.15

require github.com/tendermint/tendermint v0.34.0
