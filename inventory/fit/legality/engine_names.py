"""What one engine version knows by name: read from vLLM 0.32.0's own tables.

Model classes: model_executor/models/registry.py. Tool call parsers: the choices that its usage
text prints. Reasoning parsers: reasoning/__init__.py.
"""

from __future__ import annotations

from inventory.fit.settings.settings import Release

READ_FROM: Release = (0, 32, 0)

_MODELS = """
AXK1ForCausalLM AfmoeForCausalLM ApertusForCausalLM AriaForConditionalGeneration
AudioFlamingo3ForConditionalGeneration BagelForConditionalGeneration BailingMoeForCausalLM
BailingMoeV2ForCausalLM BailingMoeV2_5ForCausalLM BailingMoeV3ForCausalLM
BailingMoeV3VLForConditionalGeneration BeeForConditionalGeneration Blip2ForConditionalGeneration
BloomForCausalLM ChatGLMForConditionalGeneration ChatGLMModel Cohere2ForCausalLM
Cohere2MoeForCausalLM Cohere2VisionForConditionalGeneration CohereAsrForConditionalGeneration
CohereCompassForConditionalGeneration CohereForCausalLM Cosmos3EdgeForConditionalGeneration
Cosmos3ForConditionalGeneration DbrxForCausalLM DeciLMForCausalLM DeepseekForCausalLM
DeepseekOCR2ForCausalLM DeepseekOCRForCausalLM DeepseekV2ForCausalLM DeepseekV32ForCausalLM
DeepseekV3ForCausalLM DeepseekV41ForCausalLM DeepseekV4ForCausalLM
DeepseekV4ForConditionalGeneration DeepseekVLV2ForCausalLM DiffusionGemmaForBlockDiffusion
Dots3NoteForCausalLM DotsOCRForCausalLM Eagle2_5_VLForConditionalGeneration Ernie4_5ForCausalLM
Ernie4_5_MoeForCausalLM Ernie4_5_VLMoeForConditionalGeneration Exaone4ForCausalLM
Exaone4_5_ForConditionalGeneration ExaoneForCausalLM ExaoneMoEForCausalLM ExaoneMoeForCausalLM
FalconForCausalLM FalconH1ForCausalLM FalconMambaForCausalLM FireRedASR2ForConditionalGeneration
FunASRForConditionalGeneration FunAudioChatForConditionalGeneration GLM4VForCausalLM
GPT2LMHeadModel GPTJForCausalLM Gemma2ForCausalLM Gemma3ForCausalLM
Gemma3ForConditionalGeneration Gemma3nForCausalLM Gemma3nForConditionalGeneration
Gemma4ForCausalLM Gemma4ForConditionalGeneration Gemma4UnifiedForConditionalGeneration
GemmaForCausalLM Glm4ForCausalLM Glm4MoeForCausalLM Glm4MoeLiteForCausalLM
Glm4vForConditionalGeneration Glm4vMoeForConditionalGeneration Glm5NextForCausalLM
Glm5NextForConditionalGeneration GlmAsrForConditionalGeneration GlmMoeDsaForCausalLM
GlmOcrForConditionalGeneration GptOssForCausalLM Granite4VisionForConditionalGeneration
GraniteForCausalLM GraniteMoeForCausalLM GraniteMoeHybridForCausalLM GraniteMoeSWAForCausalLM
GraniteMoeSharedForCausalLM GraniteSWAForCausalLM GraniteSpeechForConditionalGeneration
GraniteSpeechPlusForConditionalGeneration H2OVLChatModel HCXVisionV2ForCausalLM HYV3ForCausalLM
HYV4ForCausalLM HfMoondream HrmTextForCausalLM HyperCLOVAXForCausalLM IQuestCoderForCausalLM
IQuestLoopCoderForCausalLM Idefics3ForConditionalGeneration InklingForCausalLM
InklingForConditionalGeneration InternLM2ForCausalLM InternLM3ForCausalLM
InternS1ForConditionalGeneration InternS1ProForConditionalGeneration
InternS2MobiusForConditionalGeneration InternS2PreviewForConditionalGeneration InternVLChatModel
InternVLForConditionalGeneration IsaacForConditionalGeneration JambaForCausalLM
K2HorizonForCausalLM KananaVForConditionalGeneration KeyeForConditionalGeneration
KeyeVL1_5ForConditionalGeneration KimiK25ForConditionalGeneration KimiK3ForConditionalGeneration
KimiLinearForCausalLM KimiVLForConditionalGeneration LLaMAForCausalLM LagunaForCausalLM
Lfm2ForCausalLM Lfm2MoeForCausalLM Lfm2VlForConditionalGeneration
LightOnOCRForConditionalGeneration Llama4ForCausalLM Llama4ForConditionalGeneration
LlamaForCausalLM Llama_Nemotron_Nano_VL LlavaForConditionalGeneration
LlavaNextForConditionalGeneration LlavaNextVideoForConditionalGeneration
LlavaOnevision2ForConditionalGeneration LlavaOnevisionForConditionalGeneration
LongcatFlashForCausalLM LongcatFlashNgramForCausalLM Mamba2ForCausalLM MambaForCausalLM
MiDashengLMModel MiMoForCausalLM MiMoV2FlashForCausalLM MiMoV2ForCausalLM MiMoV2OmniForCausalLM
MiniCPM3ForCausalLM MiniCPMForCausalLM MiniCPMO MiniCPMV MiniCPMV4_6ForConditionalGeneration
MiniCPMV4_7ForConditionalGeneration MiniMaxM2ForCausalLM MiniMaxM3SparseForCausalLM
MiniMaxM3SparseForConditionalGeneration Ministral3ForCausalLM Mistral3ForConditionalGeneration
MistralForCausalLM MistralLarge3ForCausalLM MixtralForCausalLM Molmo2ForConditionalGeneration
MolmoForCausalLM Moondream3ForCausalLM MoonshotKimiaForCausalLM MossAudioModel
MossTranscribeDiarizeForConditionalGeneration MuseGlimmerForCausalLM
MuseGlimmerForConditionalGeneration NVLM_D NemotronForCausalLM NemotronHForCausalLM
NemotronHPuzzleForCausalLM NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Nano_VL_V2
NemotronH_Omni_Reasoning_V3 NemotronH_Super_Omni_Reasoning_V3
NemotronParseForConditionalGeneration OPTForCausalLM OlmoHybridForCausalLM OlmoeForCausalLM
OpenCUAForConditionalGeneration OpenPanguVLForConditionalGeneration OpenVLAForActionPrediction
OrionForCausalLM Ovis Ovis2_5 Ovis2_6ForCausalLM Ovis2_6_MoeForCausalLM
PaddleOCRVLForConditionalGeneration PaliGemmaForConditionalGeneration PanguEmbeddedForCausalLM
PanguProMoEV2ForCausalLM PanguUltraMoEForCausalLM Param2MoEForCausalLM Phi3ForCausalLM
Phi3VForCausalLM Phi4ForCausalLMV Phi4MMForCausalLM PhiMoEForCausalLM
PixtralForConditionalGeneration Plamo3ForCausalLM QianfanOCRForConditionalGeneration
Qwen2AudioForConditionalGeneration Qwen2ForCausalLM Qwen2MoeForCausalLM
Qwen2VLForConditionalGeneration Qwen2_5OmniForConditionalGeneration Qwen2_5OmniModel
Qwen2_5_VLForConditionalGeneration Qwen3ASRForConditionalGeneration Qwen3ASRRealtimeGeneration
Qwen3ForCausalLM Qwen3MoeForCausalLM Qwen3NextForCausalLM Qwen3OmniMoeForConditionalGeneration
Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration Qwen3_5ForCausalLM
Qwen3_5ForConditionalGeneration Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration
Qwen4ExpForCausalLM Qwen4ExpForConditionalGeneration RForConditionalGeneration Rnj1ForCausalLM
SarvamMLAForCausalLM SarvamMoEForCausalLM SkyworkR1VChatModel SmolVLMForConditionalGeneration
SolarForCausalLM StableLmForCausalLM Step1ForCausalLM Step3TextForCausalLM
Step3VLForConditionalGeneration Step3p5ForCausalLM Step3p7ForConditionalGeneration
StepVLForConditionalGeneration TeleChat2ForCausalLM TeleChat3ForCausalLM TeleFLMForCausalLM
UltravoxModel UnlimitedOCRForCausalLM VoxtralForConditionalGeneration VoxtralRealtimeGeneration
WhisperForConditionalGeneration Zamba2ForCausalLM
"""

_TOOL_CALL_PARSERS = """
apertus cohere_command3 cohere_command4 deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4
deepseek_v41 dots ernie45 functiongemma gemma4 gigachat3 glm45 glm47 granite granite-20b-fc
granite4 hermes hf hunyuan_a13b hy_v3 hy_v4 inkling internlm jamba k2_horizon kimi_k2 kimi_k3
lfm2 ling3 llama3_json llama4_json llama4_pythonic longcat mimo minicpm5 minimax_m2 minimax_m3
mistral muse_glimmer olmo3 openai phi4_mini_json plamo3 poolside_v1 pythonic qwen3_coder
qwen3_json qwen3_xml seed_oss step3 step3p5 xlam
"""

_REASONING_PARSERS = """
deepseek_r1 deepseek_v3 deepseek_v4 deepseek_v41 poolside_v1 cohere_command3 cohere_command4
ernie45 gemma4 glm45 glm47 ling3 openai_gptoss granite granite_thinking_parser hf holo2
hunyuan_a13b hy_v3 hy_v4 kimi_k2 kimi_k3 k2_horizon mimo minicpmv minimax_m2
minimax_m2_append_think minimax_m3 mistral nemotron_v3 olmo3 plamo3 muse_glimmer qwen3 seed_oss
step3 step3p5 inkling
"""

_LAST_SUPPORTED = """
MotifForCausalLM=0.10.2 Phi3SmallForCausalLM=0.9.2 Phi4FlashForCausalLM=0.10.2
Phi4MultimodalForCausalLM=0.12.0 JAISLMHeadModel=0.22.0 ErnieModel=0.23.0
ErnieForSequenceClassification=0.23.0 ErnieForTokenClassification=0.23.0
InternLM2VEForCausalLM=0.23.0 QWenLMHeadModel=0.23.0 QwenVLForConditionalGeneration=0.23.0
InternLMForCausalLM=0.23.0 DonutForConditionalGeneration=0.10.2
MllamaForConditionalGeneration=0.10.2 XverseForCausalLM=0.23.0 Dots1ForCausalLM=0.23.0
BambaForCausalLM=0.23.0 MiniMaxForCausalLM=0.23.0 MiniMaxText01ForCausalLM=0.23.0
MiniMaxM1ForCausalLM=0.23.0 MiniMaxVL01ForConditionalGeneration=0.23.0
BaiChuanForCausalLM=0.23.0 BaichuanForCausalLM=0.23.0 AquilaModel=0.24.0
AquilaForCausalLM=0.24.0 Grok1ModelForCausalLM=0.24.0 Grok1ForCausalLM=0.24.0
TarsierForConditionalGeneration=0.24.0 Tarsier2ForConditionalGeneration=0.23.0
MantisForConditionalGeneration=0.24.0 MusicFlamingoForConditionalGeneration=0.24.0
AyaVisionForConditionalGeneration=0.24.0 TeleChatForCausalLM=0.25.0 PersimmonForCausalLM=0.25.0
FuyuForCausalLM=0.25.0 Plamo2ForCausalLM=0.26.0 OuroForCausalLM=0.26.0 ArcticForCausalLM=0.28.0
ChameleonForConditionalGeneration=0.28.0 Cheers=0.28.0 CheersForConditionalGeneration=0.28.0
Fairseq2LlamaForCausalLM=0.28.0 FireRedLIDForConditionalGeneration=0.28.0 GritLM=0.28.0
HCXVisionForCausalLM=0.28.0 MPTForCausalLM=0.28.0 MptForCausalLM=0.28.0 RWForCausalLM=0.28.0
StableLMEpochForCausalLM=0.28.0 PrithviGeoSpatialMAE=0.28.0
"""


def models() -> frozenset[str]:
    """Classes that the engine has an implementation of."""
    return frozenset(_MODELS.split())


def tool_call_parsers() -> frozenset[str]:
    """Names that ``--tool-call-parser`` takes."""
    return frozenset(_TOOL_CALL_PARSERS.split())


def reasoning_parsers() -> frozenset[str]:
    """Names that ``--reasoning-parser`` takes."""
    return frozenset(_REASONING_PARSERS.split())


def last_supported() -> dict[str, str]:
    """Classes that were removed, and the last version that had them."""
    return dict(pair.split("=") for pair in _LAST_SUPPORTED.split())


CHECKED_FROM: dict[str, str] = {
    "MiniMaxM2ForCausalLM": "0.20.2",
    "KimiK25ForConditionalGeneration": "0.19.1",
    "DeepseekV3ForCausalLM": "0.12.0",
    "DeepseekV32ForCausalLM": "0.18.0",
    "Qwen3MoeForCausalLM": "0.10.0",
    "Glm4MoeForCausalLM": "0.11.0",
    "GlmMoeDsaForCausalLM": "0.16.0",
    "GptOssForCausalLM": "0.10.0",
}
"""The oldest engine that vllm-project/recipes (min_vllm_version, read 2026-08-21) serves a model of
the class with. Older ones may start: MiniMax-M2.5 did on 0.16 (SemiAnalysisAI/InferenceX#832)."""
