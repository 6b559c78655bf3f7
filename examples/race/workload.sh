#!/bin/sh
# Opens the bank, and waits for both tellers' results.
touch bank/open
until grep -q '^left' bank/stdout.log; do sleep 0.02; done
