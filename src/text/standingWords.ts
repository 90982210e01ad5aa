/**
 * The words of one language in which people state what holds from then on, in lower case.
 *
 * - `words`: make a rule wherever they stand in a sentence, but not behind one of `subjects`: "never push" is one, "it never
 *   worked" is none.
 * - `begins`: make a rule where a clause begins. `holds`: wherever they stand. `unless`: a sentence with one of these is none.
 * - `asks`: begin a question that is a wish. A question of any other kind is no rule.
 * - `negative`: forbid. `contrast`: put one thing in the place of another.
 * - `small`: say nothing of what a rule is about.
 *
 * `isSpaced` tells whether words are written apart; where they are not, every phrase is looked for as it is.
 */
export interface Language {
  readonly isSpaced: boolean
  readonly words: ReadonlyArray<string>
  readonly subjects: ReadonlyArray<string>
  readonly begins: ReadonlyArray<string>
  readonly holds: ReadonlyArray<string>
  readonly unless: ReadonlyArray<string>
  readonly asks: ReadonlyArray<string>
  readonly negative: ReadonlyArray<string>
  readonly contrast: ReadonlyArray<string>
  readonly small: ReadonlyArray<string>
}

const list = (text: string): ReadonlyArray<string> => text.split("|").map((each) => each.trim())

const english: Language = {
  isSpaced: true,
  words: list("don't|dont|do not|never|always|avoid|must|mustn't|refrain"),
  subjects: list(
    "i|it|that|this|they|he|she|we|you|who|which|there|is|are|was|were|has|have|had|i've|it's|that's|why|because"
  ),
  begins: list(
    "reply in|reply with|reply only|reply as|reply to me|answer in|answer with|answer only|answer as|answer briefly|"
      + "respond in|respond with|respond only|respond as|write every|write all|write in|write only|write your|call me|"
      + "call it|address me|speak|talk to me|keep|only|no|stick to|stick with|make sure|ensure|be sure|remember|stop|"
      + "prefer|limit|tag every|tag each|include every|include each|begin every|begin each|begin your|start every|start each|start your|end every|end each|end your|"
      + "sign every|sign each|before you|before answering|before replying|before every|before each|after every|after each|"
      + "when i|whenever|treat|format|assume|leave out|use only|be concise|be brief|be terse|be polite|please use|"
      + "refer to|sign off|wrap|commit messages|every|each|all|do all|ask me before|ask before|check with me|confirm with me|tell me before|wait for my|let me"
  ),
  holds: list(
    "from now on|from here on|from this point|going forward|henceforth|at all times|in all cases|for the rest of|"
      + "for this session|this whole session|the whole session|throughout|every reply|every response|every answer|"
      + "every message|all replies|all responses|all answers|your replies|your responses|your answers|each reply|"
      + "each response|each answer|each message|whenever|every time|each time|any time|anytime|should never|should always|"
      + "should not|shouldn't|may not|can not touch|must not|you must|forbidden|not allowed|off limits|off-limits|"
      + "under no circumstances|without asking|without my|unless i|until i|instead of|rather than|by default|no matter|"
      + "as a rule|i want all|i want every|i want your|are to be|i prefer|i'd prefer|i'd rather|i always want|i don't want|i do not want|i never want|i want you to always|"
      + "we never|we always|you always|, not |no longer|no more than|at most|no exceptions"
  ),
  unless: list(
    "never mind|nevermind|don't worry|do not worry|don't know|no,|no i|no problem|no worries|no need|no that|no it|no the|"
      + "no you|no we|no this|no wait|no there|no one|no idea|no luck|keep going|keep on|keep trying|keep working|let me know|"
      + "let me see|let me check|must be|must have|only if|remember when|at most recent|why don't|don't you think|speaking of"
  ),
  asks: list("can you|could you|would you|will you|please"),
  negative: list(
    "don't|dont|do not|never|no|not|avoid|mustn't|refrain|stop|without|forbidden|shouldn't|cannot|can't|no longer"
  ),
  contrast: list("instead of|rather than|, not |and not"),
  small: list(
    "the|and|for|you|your|any|all|every|each|that|this|with|when|from|now|please|our|are|was|but|use|using|make|sure|"
      + "always|never|don't|not|must|only|into|onto|its|then|them|they|have|has|will|would|should|reply|answer|"
      + "instead|rather|than|from|going|forward"
  )
}

const german: Language = {
  isSpaced: true,
  words: list("niemals|nie|immer|stets|vermeide|vermeiden"),
  subjects: list("ich|es|das|sie|er|wir|ist|war|hat|habe|hatte|noch|fast|wie"),
  begins: list(
    "bitte nicht|bitte kein|bitte keine|bitte keinen|kein|keine|keinen|nur|antworte|schreibe|schreib|nenne mich|sprich|"
      + "bleib bei|achte darauf|stelle sicher|denk daran|denke daran|merke dir|merk dir|bevor du|vor jeder|vor jedem|"
      + "nach jeder|nach jedem|verwende nur|nutze nur|benutze nur|frag mich|frage mich"
  ),
  holds: list(
    "ab jetzt|ab sofort|von jetzt an|von nun an|künftig|in zukunft|jedes mal|jedesmal|grundsätzlich|auf keinen fall|"
      + "unter keinen umständen|für den rest|in jeder antwort|deine antworten|deinen antworten|ohne zu fragen|ohne meine|"
      + "statt|anstelle von|anstatt|ich möchte nicht|ich will nicht|du darfst nicht|du sollst nicht|darf nicht|"
      + "dürfen nicht|nicht erlaubt|verboten|wir verwenden nie|ändere nicht|ändere nie|lösche nicht|committe nicht|"
      + "schreibe nicht|sende nicht|verwende nicht|benutze nicht|frag nicht|frage nicht|mach nicht|mach keine"
  ),
  unless: list("keine ahnung|kein problem|keine sorge|nie mehr gesehen|immer noch|immerhin|nur wenn"),
  asks: list("kannst du|könntest du|würdest du|bitte"),
  negative: list("nicht|nie|niemals|kein|keine|keinen|ohne|vermeide|verboten"),
  contrast: list("statt|anstelle von|anstatt"),
  small: list("der|die|das|und|den|dem|ein|eine|einen|immer|nie|niemals|nicht|bitte|mit|von|für|auf|jetzt|deine|deinen")
}

const french: Language = {
  isSpaced: true,
  words: list("jamais|toujours|évite|évitez"),
  subjects: list("je|j'ai|il|elle|ça|ils|on|c'est|est|a|était|presque|encore"),
  begins: list(
    "ne|n'|pas de|pas d'|seulement|uniquement|réponds|répondez|écris|écrivez|appelle-moi|appelez-moi|parle|utilise uniquement|"
      + "utilisez uniquement|assure-toi|assurez-vous|rappelle-toi|souviens-toi|avant de|avant chaque|après chaque|"
      + "demande-moi|demandez-moi|garde|gardez"
  ),
  holds: list(
    "désormais|dorénavant|à partir de maintenant|à l'avenir|à chaque fois|chaque fois|en aucun cas|par défaut|"
      + "dans toutes tes réponses|dans tes réponses|dans vos réponses|chaque réponse|sans demander|sans mon|au lieu de|"
      + "plutôt que|je ne veux pas|tu ne dois|vous ne devez|interdit|il ne faut pas|pour le reste de"
  ),
  unless: list("je ne sais pas|ne t'inquiète pas|ne vous inquiétez pas|pas de problème|pas de souci|comme toujours"),
  asks: list("peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|s'il te plaît|s'il vous plaît"),
  negative: list("ne|n'|pas|jamais|sans|aucun|évite|évitez|interdit"),
  contrast: list("au lieu de|plutôt que"),
  small: list("les|des|une|que|qui|pour|dans|avec|sur|tes|vos|mes|toujours|jamais|pas|est|sont|chaque")
}

const spanish: Language = {
  isSpaced: true,
  words: list("nunca|jamás|siempre|evita|evite"),
  subjects: list("yo|él|ella|eso|esto|es|está|era|ha|he|casi|como|lo de"),
  begins: list(
    "no|solo|sólo|responde|responda|contesta|escribe|escriba|llámame|habla|usa solo|usa sólo|asegúrate|recuerda|antes de|"
      + "después de cada|pregúntame|mantén|mantenga"
  ),
  holds: list(
    "a partir de ahora|de ahora en adelante|desde ahora|en adelante|cada vez|en ningún caso|bajo ninguna circunstancia|"
      + "por defecto|en todas tus respuestas|en tus respuestas|cada respuesta|sin preguntar|sin mi|en lugar de|en vez de|"
      + "no quiero que|no debes|no debe|no puedes|prohibido|por el resto de"
  ),
  unless: list(
    "no sé|no te preocupes|no hay problema|no importa|no,|no es|no funciona|no está|no entiendo|como siempre"
  ),
  asks: list("puedes|podrías|por favor"),
  negative: list("no|nunca|jamás|sin|evita|evite|prohibido"),
  contrast: list("en lugar de|en vez de"),
  small: list("los|las|una|que|para|con|por|del|tus|mis|siempre|nunca|cada|favor")
}

const italian: Language = {
  isSpaced: true,
  words: list("mai|sempre|evita|evitare"),
  subjects: list("io|è|era|ha|ho|quasi|come|lo"),
  begins: list(
    "non|solo|soltanto|rispondi|scrivi|chiamami|parla|usa solo|assicurati|ricorda|ricordati|prima di|dopo ogni|chiedimi|mantieni"
  ),
  holds: list(
    "d'ora in poi|da ora in poi|da adesso in poi|in futuro|ogni volta|in nessun caso|per impostazione predefinita|"
      + "nelle tue risposte|in ogni risposta|senza chiedere|invece di|al posto di|piuttosto che|non voglio che|non devi|vietato"
  ),
  unless: list("non so|non preoccuparti|non importa|non funziona|non è|non capisco|come sempre"),
  asks: list("puoi|potresti|per favore"),
  negative: list("non|mai|senza|evita|vietato|nessun"),
  contrast: list("invece di|al posto di|piuttosto che"),
  small: list("gli|una|che|per|con|del|della|nelle|tue|sempre|mai|ogni|favore")
}

const portuguese: Language = {
  isSpaced: true,
  words: list("nunca|jamais|sempre|evite"),
  subjects: list("eu|ele|ela|isso|isto|é|está|era|quase|como"),
  begins: list(
    "não|só|somente|apenas|responda|escreva|me chame|chame-me|fale|use apenas|certifique-se|lembre-se|antes de|depois de cada|"
      + "pergunte-me|mantenha"
  ),
  holds: list(
    "a partir de agora|de agora em diante|daqui em diante|toda vez|cada vez|em nenhum caso|em hipótese alguma|por padrão|"
      + "nas suas respostas|em cada resposta|sem perguntar|em vez de|ao invés de|não quero que|não deve|proibido"
  ),
  unless: list("não sei|não se preocupe|não importa|não funciona|não é|não está|não entendo|como sempre"),
  asks: list("você pode|pode|poderia|por favor"),
  negative: list("não|nunca|jamais|sem|evite|proibido"),
  contrast: list("em vez de|ao invés de"),
  small: list("uma|que|para|com|por|dos|das|suas|sempre|nunca|cada|favor")
}

const dutch: Language = {
  isSpaced: true,
  words: list("nooit|altijd|vermijd"),
  subjects: list("ik|het|dat|ze|hij|wij|we|is|was|heeft|bijna|nog"),
  begins: list(
    "geen|alleen|antwoord in|antwoord met|schrijf|noem me|gebruik alleen|zorg ervoor|zorg dat|onthoud|voordat je|voor elke|"
      + "na elke|vraag me|houd|hou|verander niet|verwijder niet|stuur niet|gebruik niet|vraag niet|doe niet"
  ),
  holds: list(
    "vanaf nu|voortaan|in het vervolg|elke keer|onder geen beding|in geen geval|standaard|in je antwoorden|elk antwoord|"
      + "zonder te vragen|in plaats van|ik wil niet dat|je mag niet|mag niet|verboden"
  ),
  unless: list("geen probleem|geen idee|geen zorgen|zoals altijd|nog altijd"),
  asks: list("kun je|zou je|wil je|alsjeblieft"),
  negative: list("niet|nooit|geen|zonder|vermijd|verboden"),
  contrast: list("in plaats van"),
  small: list("het|een|van|voor|met|aan|dat|die|altijd|nooit|niet|geen|elke|nu")
}

const russian: Language = {
  isSpaced: true,
  words: list("никогда|всегда|избегай|избегайте"),
  subjects: list("я|он|она|оно|это|они|почти|как"),
  begins: list(
    "не|только|отвечай|отвечайте|пиши|пишите|называй меня|говори|используй только|используйте только|убедись|помни|запомни|"
      + "перед каждым|перед тем как|после каждого|после каждой|спрашивай|без"
  ),
  holds: list(
    "отныне|с этого момента|впредь|в дальнейшем|каждый раз|ни в коем случае|ни при каких|по умолчанию|в своих ответах|"
      + "в каждом ответе|не спрашивая|вместо|нельзя|запрещено|я не хочу, чтобы|не должен|не должны"
  ),
  unless: list("не знаю|не беспокойся|не важно|не работает|не понимаю|как всегда"),
  asks: list("можешь|не мог бы|пожалуйста"),
  negative: list("не|никогда|без|нельзя|запрещено|избегай"),
  contrast: list("вместо"),
  small: list("что|это|для|при|все|как|или|всегда|никогда|каждый|пожалуйста")
}

const chinese: Language = {
  isSpaced: false,
  words: [],
  subjects: [],
  begins: [],
  holds: list(
    "从现在起|从现在开始|从今以后|今后|以后都|以后请|请勿|不要|不得|不准|禁止|严禁|别再|永远|始终|总是要|一律|务必|必须|每次|每当|只能|只用|"
      + "用中文回|用英文回|请用|而不是|代替|回答时|回复时|默认"
  ),
  unless: list("要不要|不要紧|吗|从現在"),
  asks: [],
  negative: list("不|勿|禁|别"),
  contrast: list("而不是|代替"),
  small: []
}

const japanese: Language = {
  isSpaced: false,
  words: [],
  subjects: [],
  begins: [],
  holds: list(
    "今後|これから|これ以降|以後|常に|いつも|必ず|絶対に|決して|毎回|その都度|しないで|ないでください|禁止|してはいけ|してはなら|だけを使|"
      + "のみ使|の代わりに|ではなく|で答えて|で回答|で返信|で書いて|するな|許可なく|確認せずに"
  ),
  unless: list("ですか|でしょうか|かもしれない"),
  asks: [],
  negative: list("ない|禁止|いけ|なら|な。|ずに"),
  contrast: list("の代わりに|ではなく"),
  small: []
}

const korean: Language = {
  isSpaced: false,
  words: [],
  subjects: [],
  begins: [],
  holds: list(
    "지금부터|앞으로|이제부터|항상|언제나|절대|결코|매번|반드시|하지 마|하지마|말아|말 것|금지|해서는 안|만 사용|대신|로 답|로 대답|기본적으로"
  ),
  unless: list("까요|나요"),
  asks: [],
  negative: list("지 마|지마|말아|금지|안 |절대|결코"),
  contrast: list("대신"),
  small: []
}

/** The languages whose words are known. A sentence is a rule when one of them says so. */
export const languages: ReadonlyArray<Language> = [
  english,
  german,
  french,
  spanish,
  italian,
  portuguese,
  dutch,
  russian,
  chinese,
  japanese,
  korean
]
