import { shellWord } from '../../ui/format';

/// How a factory that was enrolled is started on its own machine. That one knows neither where we are nor its token.
export function startCommand(id: string, origin = window.location.origin): string {
  return `giga factory run --id ${shellWord(id)} --url ${shellWord(origin)} --token-file ${shellWord(`${id}.token`)}`;
}
