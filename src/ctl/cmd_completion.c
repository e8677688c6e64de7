/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl completion bash|zsh`: scripts made from the tables, so that they know every word of --help. */
#include <errno.h>
#include <string.h>

#include "ctl/ctl.h"

/* Completes names of pods by asking the daemon; quietly, because there may be none. */
static const char PODS_BASH[] = "_culvertctl_pods() {\n"
                                "    culvertctl pods 2>/dev/null | while read -r ns name rest; do\n"
                                "        [ \"$ns\" = NAMESPACE ] || printf '%s.%s\\n' \"$name\" \"$ns\"\n"
                                "    done\n"
                                "}\n";

/* All spellings of an option. */
static void put_option(FILE *out, const struct ctl_option *option)
{
	fprintf(out, " --%s", option->name);
	if (option->letter)
		fprintf(out, " -%c", option->letter);
}

/* A list a|b|c as words. */
static void put_words(FILE *out, const char *list)
{
	for (const char *at = list; *at; at++)
		fputc(*at == '|' ? ' ' : *at, out);
}

static void put_bash_command(FILE *out, const struct ctl_command *command)
{
	fprintf(out, "    %s%s%s)\n        options=\"", command->name, command->alias ? "|" : "",
	        command->alias ? command->alias : "");
	for (unsigned opt = 0; opt < CTL_OPT_CNT; opt++)
		if (ctl_command_takes(command, opt))
			put_option(out, ctl_option_at(opt));
	fputs("\"\n        outputs=\"", out);
	put_words(out, command->outputs);
	fputs("\"\n", out);
	if (strstr(command->arguments, "POD") || strstr(command->arguments, "FROM"))
		fputs("        words=\"$(_culvertctl_pods)\"\n", out);
	else if (strcmp(command->name, "help") == 0)
		fputs("        words=\"$commands\"\n", out);
	else if (strcmp(command->name, "log") == 0)
		fputs("        words=\"off error warn info debug trace\"\n", out);
	else if (strcmp(command->name, "completion") == 0)
		fputs("        words=\"bash zsh\"\n", out);
	fputs("        ;;\n", out);
}

static void put_commands(FILE *out)
{
	const struct ctl_command *command;
	for (size_t i = 0; (command = ctl_command_at(i)); i++)
		fprintf(out, "%s%s", i > 0 ? " " : "", command->name);
}

static void put_bash(FILE *out)
{
	const struct ctl_command *command;
	fputs("# bash completion for culvertctl                          -*- shell-script -*-\n", out);
	fputs(PODS_BASH, out);
	fputs("_culvertctl() {\n"
	      "    local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
	      "    local command=\"\" word i options=\"\" outputs=\"\" words=\"\"\n"
	      "    local commands=\"",
	        out);
	put_commands(out);
	fputs("\"\n"
	      "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "        word=\"${COMP_WORDS[i]}\"\n"
	      "        case \"$word\" in\n"
	      "        --run-dir|--instance) ((i++)) ;;\n"
	      "        -*) ;;\n"
	      "        *) command=\"$word\"; break ;;\n"
	      "        esac\n"
	      "    done\n"
	      "    case \"$prev\" in\n"
	      "    --run-dir) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); return ;;\n"
	      "    --file|-f) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n"
	      "    --pod|-p) mapfile -t COMPREPLY < <(compgen -W \"$(_culvertctl_pods)\" -- \"$cur\"); return ;;\n"
	      "    --direction) mapfile -t COMPREPLY < <(compgen -W \"inbound outbound\" -- \"$cur\"); return ;;\n"
	      "    esac\n"
	      "    case \"$command\" in\n"
	      "    \"\") options=\"--run-dir --instance --help -h --version\"; words=\"$commands\" ;;\n",
	        out);
	for (size_t i = 0; (command = ctl_command_at(i)); i++)
		put_bash_command(out, command);
	fputs("    esac\n"
	      "    if [ \"$prev\" = -o ] || [ \"$prev\" = --output ]; then\n"
	      "        words=\"$outputs\"\n"
	      "    elif [[ \"$cur\" == -* ]]; then\n"
	      "        words=\"$options\"\n"
	      "    fi\n"
	      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	      "}\n"
	      "complete -F _culvertctl culvertctl\n",
	        out);
}

/* Text inside of single quotes and a description's brackets; ours has neither quotes nor brackets. */
static void put_zsh_option(FILE *out, const struct ctl_command *command, enum ctl_opt opt)
{
	const struct ctl_option *option = ctl_option_at(opt);
	char values[128] = "";
	if (opt == CTL_OPT_OUTPUT || opt == CTL_OPT_DIRECTION) {
		snprintf(values, sizeof(values), ":(%s)",
		        opt == CTL_OPT_OUTPUT ? command->outputs : "inbound|outbound");
		for (char *at = values; *at; at++)
			*at = *at == '|' ? ' ' : *at;
	}
	const char *action = opt == CTL_OPT_RUN_DIR ? ":_files -/"
	                     : opt == CTL_OPT_FILE  ? ":_files"
	                     : opt == CTL_OPT_POD   ? ":_culvertctl_pods"
	                     : values[0]            ? values
	                                            : ":";
	if (option->letter)
		fprintf(out, "            '-%c[%s]%s%s%s' \\\n", option->letter, option->sentence,
		        option->argument ? ":" : "", option->argument ? option->name : "",
		        option->argument ? action : "");
	fprintf(out, "            '--%s[%s]%s%s%s' \\\n", option->name, option->sentence,
	        option->argument ? ":" : "", option->argument ? option->name : "",
	        option->argument ? action : "");
}

static void put_zsh_command(FILE *out, const struct ctl_command *command)
{
	const char *words = strstr(command->arguments, "POD") || strstr(command->arguments, "FROM")
	                            ? "_culvertctl_pods"
	                    : strcmp(command->name, "help") == 0       ? "_culvertctl_commands"
	                    : strcmp(command->name, "log") == 0        ? "(off error warn info debug trace)"
	                    : strcmp(command->name, "completion") == 0 ? "(bash zsh)"
	                                                               : NULL;
	fprintf(out, "        %s%s%s)\n        _arguments \\\n", command->name, command->alias ? "|" : "",
	        command->alias ? command->alias : "");
	for (unsigned opt = 0; opt < CTL_OPT_CNT; opt++)
		if (ctl_command_takes(command, opt))
			put_zsh_option(out, command, opt);
	if (words)
		fprintf(out, "            '*: :%s'\n        ;;\n", words);
	else
		fputs("            && return 0\n        ;;\n", out);
}

static void put_zsh(FILE *out)
{
	const struct ctl_command *command;
	fputs("#compdef culvertctl\n"
	      "_culvertctl_pods() {\n"
	      "    local -a pods\n"
	      "    pods=(${(f)\"$(culvertctl pods 2>/dev/null | awk 'NR > 1 {print $2 \".\" $1}')\"})\n"
	      "    compadd -a pods\n"
	      "}\n"
	      "_culvertctl_commands() {\n"
	      "    local -a commands\n"
	      "    commands=(\n",
	        out);
	for (size_t i = 0; (command = ctl_command_at(i)); i++)
		fprintf(out, "        '%s:%s'\n", command->name, command->sentence);
	fputs("    )\n"
	      "    _describe command commands\n"
	      "}\n"
	      "_culvertctl() {\n"
	      "    local context state line\n"
	      "    _arguments -C \\\n"
	      "        '--run-dir[folder of the instances]:run-dir:_files -/' \\\n"
	      "        '--instance[which instance]:instance:' \\\n"
	      "        '(- *)'{-h,--help}'[explain it]' \\\n"
	      "        '(- *)--version[print the versions]' \\\n"
	      "        '1: :_culvertctl_commands' \\\n"
	      "        '*::argument:->arguments'\n"
	      "    [[ $state == arguments ]] || return 0\n"
	      "    case $words[1] in\n",
	        out);
	for (size_t i = 0; (command = ctl_command_at(i)); i++)
		put_zsh_command(out, command);
	fputs("    esac\n"
	      "}\n"
	      "if [ \"$funcstack[1]\" = \"_culvertctl\" ]; then\n"
	      "    _culvertctl \"$@\"\n"
	      "else\n"
	      "    compdef _culvertctl culvertctl\n"
	      "fi\n",
	        out);
}

int cmd_completion(const struct ctl *ctl, struct err *err)
{
	if (strcmp(ctl->words[0], "bash") == 0)
		put_bash(ctl->out);
	else if (strcmp(ctl->words[0], "zsh") == 0)
		put_zsh(ctl->out);
	else
		return err_set(err, -EINVAL, "completion is for bash or zsh, not %s", ctl->words[0]);
	return 0;
}
