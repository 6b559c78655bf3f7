#!/bin/sh
# Opens the bank, and waits for what both tellers have left.
touch bank/open
until grep -q '^left' bank/stdout.log; do sleep 0.02; done
