complete -c shoal -s c -l config -d 'Read start-up settings from FILE' -r -F
complete -c shoal -s i -l interactive -d 'CLI on this terminal, as unix { interactive }'
complete -c shoal -l check-config -d 'Read and check the settings, start nothing'
complete -c shoal -s v -l version -d 'Print the version'
complete -c shoal -s h -l help -d 'Print help'
complete -c shoal -l no-alloc-intercept -d 'Accepted as VPP has it; nothing to do here'
