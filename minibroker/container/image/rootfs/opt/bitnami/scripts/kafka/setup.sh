#!/bin/bash
# Nothing to set up: the start reads the variables.
